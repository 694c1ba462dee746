"""What a rule may look at: the one declaration from which engines and distribution follow."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Granularity"]


class Granularity(IntEnum):
    """How much of the parameters a rule sees at once; a larger value sees more.

    The core never cuts, flattens or shards anything below what the rule declares. An option that looks
    at a whole tensor raises the granularity of the rule it is used with: ``max(rule, *options)``.
    """

    ELEMENTWISE = 0
    """One element of the parameter, the gradient and each state: may be viewed as real, cut, flattened, sharded."""
    TENSOR = 1
    """A whole tensor (norms, means): may be batched, is never cut."""
    MATRIX = 2
    """A matrix as a whole (products, factorizations): equal shapes may be stacked."""
    GLOBAL = 3
    """All parameters at once: first reduced, then updated."""
