"""The task ``source``: the text of Python's own standard library, and a small GPT that reads it by characters."""

from __future__ import annotations

import hashlib
import string
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from .errors import RaceError
from .gpt import GPT
from .tasks import Evaluation, Problem

__all__ = ["ALPHABET", "Text", "build", "encode", "load"]

MOST_CHARACTERS = 1_000_000
FEWEST_CHARACTERS = 100_000
CONTEXT = 96
BATCH = 16
HELD_OUT_WINDOWS = 128

ALPHABET = "\n\t" + "".join(sorted(set(string.printable) - set(string.whitespace) | {" "}))
"""Characters that have a token of their own; all others share the token after the last."""


@dataclass(frozen=True)
class Text:
    """Two texts, of files that differ; no window held out stands anywhere in the training text.

    Args:
        train: the training text.
        held_out: windows of ``CONTEXT + 1`` characters.
        train_files, held_out_files: where they come from.
    """

    train: str
    held_out: tuple[str, ...]
    train_files: tuple[str, ...]
    held_out_files: tuple[str, ...]


def load(folder: Path | None = None) -> Text:
    """The modules of the standard library in the order of their names, about a million characters; the last tenth held out.

    Args:
        folder: where to look; default: this interpreter's library.

    Raises:
        RaceError: there is too little source text, as in installations of compiled modules only.
    """
    folder = Path(sysconfig.get_path("stdlib")) if folder is None else folder
    texts: dict[str, str] = {}
    size = 0
    for path in sorted(folder.glob("*.py")):
        # Not every file there is Python's: installers add modules that describe one machine.
        if path.stem not in sys.stdlib_module_names:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if text in texts.values():
            continue
        texts[path.name] = text
        size += len(text)
        if size >= MOST_CHARACTERS:
            break
    if size < FEWEST_CHARACTERS:
        raise RaceError(
            f"the task source needs Python's library as source text, of which {folder} has too little; try --task digits"
        )
    kept: list[str] = []
    held_out: list[str] = []
    count = 0
    for name, text in texts.items():
        (kept if count < 0.9 * size else held_out).append(name)
        count += len(text)
    train = "".join(texts[name] for name in kept)
    return Text(train, _windows("".join(texts[name] for name in held_out), train), tuple(kept), tuple(held_out))


def _windows(text: str, train: str) -> tuple[str, ...]:
    """Windows spread over ``text``, without those (licences, boilerplate) that ``train`` repeats."""
    length = CONTEXT + 1
    stride = max(length, len(text) // HELD_OUT_WINDOWS)
    windows = [text[start : start + length] for start in range(0, len(text) - length + 1, stride)]
    return tuple(window for window in windows if window not in train)


def encode(text: str) -> Tensor:
    """Token numbers (len(text),), int64."""
    numbers = {character: number for number, character in enumerate(ALPHABET)}
    return torch.tensor([numbers.get(character, len(ALPHABET)) for character in text])


def _loss(model: nn.Module, windows: Tensor) -> Tensor:
    return functional.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())


def build(seed: int) -> Problem:
    """The network with the weights of this seed, and batches of windows drawn at random from the training text."""
    text = load()
    tokens = encode(text.train)
    held_out = torch.stack([encode(window) for window in text.held_out])

    def batches() -> Iterator[Tensor]:
        generator = torch.Generator().manual_seed(seed)
        while True:
            starts = torch.randint(len(tokens) - CONTEXT, (BATCH, 1), generator=generator)
            yield tokens[starts + torch.arange(CONTEXT + 1)]

    def evaluate(model: nn.Module) -> Evaluation:
        loss, right = 0.0, 0
        for windows in held_out.split(2 * BATCH):
            logits, targets = model(windows[:, :-1]), windows[:, 1:]
            loss += float(functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum"))
            right += int((logits.argmax(-1) == targets).sum())
        count = held_out.shape[0] * CONTEXT
        return Evaluation(loss / count, right / count)

    return Problem(
        model=GPT(vocabulary=len(ALPHABET) + 1, context=CONTEXT),
        batches=batches,
        loss=_loss,
        evaluate=evaluate,
        data={
            "train_characters": len(text.train),
            "held_out_characters": held_out.shape[0] * CONTEXT,
            "train_files": len(text.train_files),
            "held_out_files": len(text.held_out_files),
            "batch": BATCH,
            "context": CONTEXT,
            "sha256": hashlib.sha256("\0".join((text.train, *text.held_out)).encode()).hexdigest(),
        },
    )
