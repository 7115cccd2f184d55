"""Tables, bins and targets: what a fit learns from."""
