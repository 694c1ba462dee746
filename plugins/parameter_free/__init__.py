"""Optimizers that find their own learning rate."""
