"""A place of its own for a training: its random numbers and torch's switches are the caller's again afterwards."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy
import torch

__all__ = ["isolated"]


@contextmanager
def isolated(seed: int) -> Iterator[None]:
    """Seed the CPU's random numbers and ask for deterministic algorithms inside a ``with`` block only.

    Args:
        seed: 0 to 2³² − 1, which is what numpy takes.
    """
    torch_state, python_state, numpy_state = torch.get_rng_state(), random.getstate(), numpy.random.get_state()
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    fill = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    try:
        # Not torch.manual_seed: that one also seeds accelerators, whose state would be lost.
        torch.default_generator.manual_seed(seed)
        random.seed(seed)
        numpy.random.seed(seed)
        torch.use_deterministic_algorithms(True, warn_only=True)
        # Filling every new tensor would be timed as the optimizer's work.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        with torch.enable_grad():
            yield
    finally:
        torch.set_rng_state(torch_state)
        random.setstate(python_state)
        numpy.random.set_state(numpy_state)
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        torch.utils.deterministic.fill_uninitialized_memory = fill  # type: ignore[attr-defined]
