"""The task ``digits``: 1,797 handwritten digits of 8 × 8 pixels, and a small convolutional network."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from .errors import RaceError
from .tasks import Evaluation, Problem

__all__ = ["ConvNet", "Digits", "build", "load"]

BATCH = 64
HELD_OUT_EVERY = 5


@dataclass(frozen=True)
class Digits:
    """Pictures (n, 1, 8, 8) with values of 0 to 1 and labels (n,) of 0 to 9, split in two."""

    pictures: Tensor
    labels: Tensor
    held_out_pictures: Tensor
    held_out_labels: Tensor


def load() -> Digits:
    """The data that scikit-learn ships, in a fixed random order; every fifth picture is held out.

    Raises:
        RaceError: scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise RaceError("the task digits needs scikit-learn: pip install 'optimizer-zoo[race]'") from None
    values, labels = load_digits(return_X_y=True)
    x = torch.tensor(values, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    y = torch.tensor(labels, dtype=torch.int64)
    # The file goes writer by writer; a shuffle that no race's seed changes mixes them.
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    x, y = x[order], y[order]
    held_out = torch.arange(len(x)) % HELD_OUT_EVERY == 0
    return Digits(x[~held_out], y[~held_out], x[held_out], y[held_out])


class ConvNet(nn.Module):
    """Two convolutions and a linear layer: 9,930 parameters; pictures (n, 1, 8, 8) to logits (n, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 4 * 4, 10),
        )

    def forward(self, pictures: Tensor) -> Tensor:
        logits: Tensor = self.layers(pictures)
        return logits


def _loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    pictures, labels = batch
    return functional.cross_entropy(model(pictures), labels)


def build(seed: int) -> Problem:
    """The network with the weights of this seed, and batches drawn epoch by epoch in the seed's order."""
    digits = load()

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        generator = torch.Generator().manual_seed(seed)
        while True:
            order = torch.randperm(len(digits.labels), generator=generator)
            for rows in order.split(BATCH):
                if len(rows) == BATCH:
                    yield digits.pictures[rows], digits.labels[rows]

    def evaluate(model: nn.Module) -> Evaluation:
        logits = model(digits.held_out_pictures)
        loss = functional.cross_entropy(logits, digits.held_out_labels)
        accuracy = (logits.argmax(1) == digits.held_out_labels).double().mean()
        return Evaluation(float(loss), float(accuracy))

    fingerprint = hashlib.sha256(digits.pictures.numpy().tobytes() + digits.held_out_pictures.numpy().tobytes())
    return Problem(
        model=ConvNet(),
        batches=batches,
        loss=_loss,
        evaluate=evaluate,
        data={
            "train_pictures": len(digits.labels),
            "held_out_pictures": len(digits.held_out_labels),
            "batch": BATCH,
            "sha256": fingerprint.hexdigest(),
        },
    )
