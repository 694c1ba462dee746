"""What an optimizer can do, known before it is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .granularity import Granularity

if TYPE_CHECKING:
    from .optimizer import BaseOptimizer

__all__ = ["Capabilities", "capabilities_of"]


@dataclass(frozen=True)
class Capabilities:
    """What follows from a rule's declarations; the test-suite runs each claim for every registered optimizer.

    Args:
        granularity: what the rule looks at under default options.
        engines: engines that run it (others run it tensor by tensor).
        complex: complex parameters are taken, as their real view.
        sparse: sparse gradients are taken as they are (any rule takes them with ``densify=True``).
        closure: ``step`` needs a closure.
        create_graph: backward must be called with ``create_graph=True``.
        capturable: ``capturable=True`` keeps the step free of reads, so that it can be captured in a CUDA graph.
        differentiable: autograd can flow through the step.
        gradient_release: :func:`zoo.release_gradients` can step parameters inside backward.
        sharded: how parameters sharded by FSDP2 are stepped: on the local shard, or gathered.
    """

    granularity: Granularity
    engines: tuple[str, ...]
    complex: bool
    sparse: bool
    closure: bool
    create_graph: bool
    capturable: bool
    differentiable: bool
    gradient_release: bool
    sharded: Literal["local", "gathered"]


def capabilities_of(cls: type[BaseOptimizer[Any]]) -> Capabilities:
    """The capabilities of an optimizer class."""
    elementwise = cls.granularity is Granularity.ELEMENTWISE
    needs_all = cls.granularity is Granularity.GLOBAL
    special = cls.needs_closure or cls.needs_create_graph
    # Numbers that a group moves on once a step can't be moved once a parameter.
    steps_alone = not special and not needs_all and not cls.moves_group_numbers()
    engines = ["loop", *(["blocked"] if elementwise else []), "foreach", "compiled"]
    return Capabilities(
        granularity=cls.granularity,
        engines=tuple(engines if cls.fused_kernel is None else [*engines, "fused"]),
        complex=cls.supports_complex,
        sparse=cls.supports_sparse,
        closure=cls.needs_closure,
        create_graph=cls.needs_create_graph,
        capturable=cls.supports_capturable and not special,
        differentiable=not special and not needs_all,
        gradient_release=steps_alone,
        sharded="local" if elementwise else "gathered",
    )
