"""The smallest plugin."""
