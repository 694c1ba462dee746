"""Schedule-free optimizers: averages of iterates in the place of a schedule."""
