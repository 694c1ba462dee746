"""Sets of parameter shapes that models really have."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

__all__ = ["SETS", "make_params"]

Shape = tuple[int, ...]


def _gpt2() -> list[Shape]:
    """GPT-2 small: 124M parameters in 148 tensors, the output head tied to the token embedding."""
    width, blocks = 768, 12
    block: list[Shape] = [
        (width,),
        (width,),
        (3 * width, width),
        (3 * width,),
        (width, width),
        (width,),
        (width,),
        (width,),
        (4 * width, width),
        (4 * width,),
        (width, 4 * width),
        (width,),
    ]
    return [(50257, width), (1024, width), *block * blocks, (width,), (width,)]


def _resnet50_like() -> list[Shape]:
    """The convolutions, norms and head of a ResNet-50 whose widest stage is cut: about 17M parameters, 161 tensors."""
    shapes: list[Shape] = [(64, 3, 7, 7), (64,), (64,)]
    inputs = 64
    for width, count in ((64, 3), (128, 4), (256, 6), (400, 3)):
        for index in range(count):
            out = width * 4
            for shape in ((width, inputs, 1, 1), (width, width, 3, 3), (out, width, 1, 1)):
                shapes += [shape, (shape[0],), (shape[0],)]
            if index == 0:
                shapes += [(out, inputs, 1, 1), (out,), (out,)]
            inputs = out
    return [*shapes, (1000, inputs), (1000,)]


def _lora() -> list[Shape]:
    """Adapters: 1,000 tensors of 3,072 elements."""
    return [(3072,)] * 1000


def _tiny() -> list[Shape]:
    """A small network: 20 tensors, 4,430 parameters."""
    return [(32,), (32, 16), (10,), (10, 32)] * 5


def _norms() -> list[Shape]:
    """Norms and biases of a deep network: 400 vectors of 768."""
    return [(768,)] * 400


SETS: dict[str, Callable[[], list[Shape]]] = {
    "gpt2": _gpt2,
    "resnet50-like": _resnet50_like,
    "lora": _lora,
    "norms": _norms,
    "tiny": _tiny,
}


def make_params(name: str, seed: int = 0) -> list[nn.Parameter]:
    """Parameters of the set, with small random gradients."""
    generator = torch.Generator().manual_seed(seed)
    params = []
    for shape in SETS[name]():
        p = nn.Parameter(torch.randn(shape, generator=generator) * 0.02)
        p.grad = torch.randn(shape, generator=generator) * 1e-3
        params.append(p)
    return params
