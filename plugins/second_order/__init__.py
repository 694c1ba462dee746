"""Optimizers that use the diagonal of the Hessian."""
