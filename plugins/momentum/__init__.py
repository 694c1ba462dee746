"""The momentum family."""
