"""What the race's tests share: the extra's packages, a quick task, and optimizers of our own by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from zoo.race import runner
from zoo.race.tasks import TASKS, RaceTask

from .tiny import TINY

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

Factory = Callable[[nn.Module], torch.optim.Optimizer]


@pytest.fixture
def tiny() -> Iterator[RaceTask]:
    """The quick task, known by name while the test runs."""
    yield TASKS.register(TINY)
    TASKS.unregister(TINY.name)


@pytest.fixture
def optimizers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets a test race optimizers that the registry does not know: ``optimizers(name=factory)``."""

    def use(**factories: Factory) -> None:
        real = runner.build_optimizer

        def build(name: str, model: nn.Module, lr: float | None) -> Any:
            return factories[name](model) if name in factories else real(name, model, lr)

        monkeypatch.setattr(runner, "build_optimizer", build)

    return use
