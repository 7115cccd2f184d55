"""Shape trees beside the paper's numbers and beside their peers.

The way of a benchmark: a `Dataset` is read, its rows are split as in the paper, a `Method` is
fitted by a `protocol` in a worker of its own, and what is measured goes to one SQLite file. The
report and the README's tables are made from that file, or from the CSV files it is exported to.
"""
