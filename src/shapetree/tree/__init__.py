"""A tree in the units of the user: arrays, predictions, sketches, words, and the view of it."""
