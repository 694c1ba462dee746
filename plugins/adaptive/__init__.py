"""The adaptive family."""
