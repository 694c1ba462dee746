"""Tests of the helpers: claims about each, and claims about all of them."""
