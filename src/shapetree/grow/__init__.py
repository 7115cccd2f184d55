"""Growth: rows, searches and the order in which nodes are split."""
