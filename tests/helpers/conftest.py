"""Property tests draw the same examples at every run, and are not timed: the first call warms up."""

from hypothesis import settings

settings.register_profile("zoo", deadline=None, derandomize=True)
settings.load_profile("zoo")
