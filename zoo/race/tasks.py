"""What a race trains on: two tasks of real data that need no download."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["TASKS", "RaceError", "RaceTask"]


class RaceError(ValueError):
    """A race can't be run as asked: the message says why and what to do."""


@dataclass(frozen=True)
class RaceTask:
    """One task.

    Args:
        name: what ``--task`` calls it.
        summary: one line.
        model: builds the network from a seed.
        data: loads (train inputs, train targets, held-out inputs, held-out targets).
        batch: draws a training batch from inputs and targets with a generator.
        logits: the network's scores for inputs, classes last.
        steps: how many steps a race takes by default.
        learning_rates: tuned by hand for this task, by optimizer; others use their own default.
    """

    name: str
    summary: str
    model: Callable[[], nn.Module]
    data: Callable[[], tuple[Tensor, Tensor, Tensor, Tensor]]
    batch: Callable[[Tensor, Tensor, torch.Generator], tuple[Tensor, Tensor]]
    steps: int
    learning_rates: Mapping[str, float]

    @staticmethod
    def loss(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        """Mean cross entropy of the network's scores."""
        logits = model(inputs)
        return functional.cross_entropy(logits.flatten(0, -2), targets.flatten())

    @torch.no_grad()
    def evaluate(self, model: nn.Module, inputs: Tensor, targets: Tensor) -> tuple[float, float]:
        """Loss and accuracy."""
        losses, right = [], 0
        for part, expected in zip(inputs.split(256), targets.split(256), strict=True):
            logits = model(part)
            losses.append(float(functional.cross_entropy(logits.flatten(0, -2), expected.flatten(), reduction="sum")))
            right += int((logits.argmax(-1) == expected).sum())
        return sum(losses) / targets.numel(), right / targets.numel()


# Digits ---------------------------------------------------------------------------------------------------


class _ConvNet(nn.Module):
    """Two convolutions and a linear layer for 8 × 8 pictures: 5,514 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * 4 * 4, 10),
        )

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x)
        return out


def _digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise RaceError("the digits come with scikit-learn: pip install 'optimizer-zoo[race]'") from None
    images, labels = load_digits(return_X_y=True)
    x = torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    y = torch.tensor(labels)
    # Writers follow one another in the file; a fixed shuffle mixes them. Every fifth picture is held out.
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    x, y = x[order], y[order]
    held_out = torch.arange(len(x)) % 5 == 0
    return x[~held_out], y[~held_out], x[held_out], y[held_out]


def _rows(x: Tensor, y: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    index = torch.randint(len(x), (64,), generator=generator)
    return x[index], y[index]


# Source ---------------------------------------------------------------------------------------------------

CONTEXT, WIDTH, HEADS, DEPTH = 64, 64, 4, 2
MOST_BYTES = 1_000_000


class _Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        heads = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class _GPT(nn.Module):
    """A pre-norm transformer over characters, the head tied to the embedding: about 112,000 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(128, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(_Block() for _ in range(DEPTH)))
        self.norm = nn.LayerNorm(WIDTH)
        for embedding in (self.wte, self.wpe):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        return functional.linear(self.norm(self.blocks(x)), self.wte.weight)


def _source() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    folder = Path(sysconfig.get_paths()["stdlib"])
    text = bytearray()
    for path in sorted(folder.glob("*.py")):
        text += path.read_bytes()
        if len(text) >= MOST_BYTES:
            break
    if len(text) < 100_000:
        raise RaceError(f"no Python source to train on in {folder}: use --task digits")
    tokens = torch.frombuffer(text[:MOST_BYTES], dtype=torch.uint8).long().clamp(max=127)
    cut = len(tokens) * 9 // 10  # the last tenth is held out: other files than those trained on
    train, held_out = tokens[:cut], tokens[cut:]
    held_out = held_out[: (min(len(held_out), 32_000) - 1) // CONTEXT * CONTEXT + 1]
    return train, train, held_out[:-1].view(-1, CONTEXT), held_out[1:].view(-1, CONTEXT)


def _windows(text: Tensor, _: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    starts = torch.randint(len(text) - CONTEXT - 1, (16, 1), generator=generator)
    index = starts + torch.arange(CONTEXT)
    return text[index], text[index + 1]


TASKS = {
    task.name: task
    for task in (
        RaceTask(
            "digits",
            "handwritten digits (scikit-learn's), a small convolutional network",
            _ConvNet,
            _digits,
            _rows,
            400,
            {"sgd": 0.1, "adam": 3e-3, "adamw": 3e-3, "lion": 1e-3, "muon": 0.02},
        ),
        RaceTask(
            "source",
            "the text of Python's standard library, a character-level GPT",
            _GPT,
            _source,
            _windows,
            400,
            {"sgd": 0.3, "adam": 3e-3, "adamw": 3e-3, "lion": 5e-4, "muon": 0.02},
        ),
    )
}
