"""A task of a few milliseconds: eight inputs, three classes that a linear map made."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.race.tasks import Evaluation, Problem, RaceTask


def build(seed: int) -> Problem:
    """A small network; data that no seed changes."""
    fixed = torch.Generator().manual_seed(7)
    x = torch.randn(120, 8, generator=fixed)
    y = (x @ torch.randn(8, 3, generator=fixed)).argmax(1)

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        generator = torch.Generator().manual_seed(seed)
        while True:
            rows = torch.randint(80, (16,), generator=generator)
            yield x[rows], y[rows]

    def evaluate(model: nn.Module) -> Evaluation:
        logits = model(x[80:])
        right = (logits.argmax(1) == y[80:]).double().mean()
        return Evaluation(float(functional.cross_entropy(logits, y[80:])), float(right))

    return Problem(
        model=nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)),
        batches=batches,
        loss=lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]),
        evaluate=evaluate,
        data={"train_rows": 80, "held_out_rows": 40},
    )


TINY = RaceTask("tiny", "a linear map", build, 12, {"adam": 0.01})
