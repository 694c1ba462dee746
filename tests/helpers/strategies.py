"""What property tests draw: shapes and tensors of ordinary, tiny and huge numbers."""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from torch import Tensor

SHAPES = st.lists(st.integers(1, 5), min_size=0, max_size=4).map(tuple)
MATRICES = st.tuples(st.integers(1, 6), st.integers(1, 6))
SCALES = st.sampled_from([1e-12, 1e-3, 1.0, 1e6])
BETAS = st.one_of(st.floats(0.0, 0.99999), st.sampled_from([0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999]))
STEPS = st.one_of(st.integers(1, 100), st.integers(1, 10**7))


@st.composite
def tensors(
    draw: st.DrawFn,
    count: int = 1,
    shapes: st.SearchStrategy[tuple[int, ...]] = SHAPES,
    dtype: torch.dtype = torch.float64,
) -> list[Tensor]:
    """Tensors of one shape, each of its own scale; some elements are exactly zero."""
    shape = draw(shapes)
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    result = []
    for _ in range(count):
        x = torch.randn(shape, generator=generator, dtype=torch.float64) * draw(SCALES)
        x = x * (torch.rand(shape, generator=generator) > draw(st.sampled_from([0.0, 0.3])))
        result.append(x.to(dtype))
    return result
