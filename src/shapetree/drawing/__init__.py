"""What pictures, graphs and pages share: colours, axes and the maps of pairs."""
