"""``zoo race``: the same small network trained once with each optimizer, on real data that is already here."""
