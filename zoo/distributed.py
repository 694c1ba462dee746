"""Tensors that are sharded over ranks (DTensor), seen from one rank."""

from __future__ import annotations

import sys

from torch import Tensor

__all__ = ["is_distributed", "local"]


def is_distributed(tensor: Tensor) -> bool:
    """Whether ``tensor`` is a DTensor."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def local(tensor: Tensor) -> Tensor:
    """This rank's part of a DTensor, sharing its memory; any other tensor as it is."""
    if is_distributed(tensor):
        return tensor.to_local()  # type: ignore[attr-defined, no-any-return]
    return tensor
