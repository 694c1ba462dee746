"""The built-in optimizers, a folder a family, a file an optimizer."""
