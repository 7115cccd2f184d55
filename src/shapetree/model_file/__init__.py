"""The model file: a fitted tree as JSON, and back."""
