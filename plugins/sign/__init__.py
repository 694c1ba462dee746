"""The sign family."""
