"""The optimizer's own random numbers: a function of seed, step and parameter, so nothing has to be saved."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["Noise", "stream_seed"]

_MASK = 2**63 - 1


def stream_seed(seed: int, step: int, position: int) -> int:
    """A seed of its own for each (seed, step, position): neighbours give unrelated streams."""
    mixed = seed & _MASK
    for number in (step, position):
        mixed = (mixed ^ number) * 0x9E3779B97F4A7C15 & _MASK
        mixed ^= mixed >> 29
    return mixed


class Noise:
    """Draws int32 numbers in [0, 2¹⁶), one after another: the same stream however the parameter is cut.

    Args:
        seed: from :func:`stream_seed`.
        device: where the numbers are needed.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self._generator = torch.Generator(device).manual_seed(seed)
        self._device = device

    def __call__(self, count: int) -> Tensor:
        return torch.randint(0, 2**16, (count,), dtype=torch.int32, device=self._device, generator=self._generator)
