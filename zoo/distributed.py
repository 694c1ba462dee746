"""Tensors that are sharded over ranks (DTensor), seen from one rank.

An elementwise rule runs on each rank's own shard: no communication. A rule that looks at whole tensors gets
the whole tensor on every rank (all compute the same), and each rank keeps its part of the result.
"""

from __future__ import annotations

import sys
from typing import Any, cast

from torch import Tensor

__all__ = ["gathered", "is_distributed", "keep_own_part_", "local"]


def _dtensor_module() -> Any:
    # A DTensor can only exist when its module is loaded, so looking never imports it.
    return sys.modules.get("torch.distributed.tensor")


def is_distributed(tensor: Tensor) -> bool:
    """Whether ``tensor`` is a DTensor."""
    module = _dtensor_module()
    return module is not None and isinstance(tensor, module.DTensor)


def local(tensor: Tensor, like: Tensor | None = None) -> Tensor:
    """This rank's part of a DTensor, sharing its memory; any other tensor as it is.

    Args:
        tensor: a plain tensor or a DTensor.
        like: a DTensor whose placement ``tensor`` is brought to first, if it differs.
    """
    if not is_distributed(tensor):
        return tensor
    sharded: Any = tensor
    if like is not None and is_distributed(like):
        other: Any = like
        if sharded.placements != other.placements:
            sharded = sharded.redistribute(other.device_mesh, other.placements)
    return cast(Tensor, sharded.to_local())


def gathered(tensor: Tensor) -> Tensor:
    """The whole of a DTensor on every rank; any other tensor as it is. A collective: every rank must call it."""
    return cast(Tensor, cast(Any, tensor).full_tensor()) if is_distributed(tensor) else tensor


def keep_own_part_(tensor: Tensor, whole: Tensor) -> None:
    """Write this rank's part of ``whole`` into the DTensor ``tensor``. No communication."""
    module, sharded = _dtensor_module(), cast(Any, tensor)
    replicated = [module.Replicate()] * sharded.device_mesh.ndim
    part = module.DTensor.from_local(whole, sharded.device_mesh, replicated, run_check=False)
    sharded.to_local().copy_(part.redistribute(sharded.device_mesh, sharded.placements).to_local())
