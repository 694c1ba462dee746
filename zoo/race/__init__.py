"""``zoo race``: the same small network trained once with each optimizer, on real data that is already here.

Importing this package, its ``cli`` and its ``tasks`` imports no torch.
"""
