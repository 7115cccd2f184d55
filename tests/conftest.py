"""Settings that all tests share."""

from hypothesis import settings

settings.register_profile("shapetree", deadline=None, max_examples=60)
settings.load_profile("shapetree")
