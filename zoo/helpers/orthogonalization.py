"""The nearest orthogonal matrix by matrix products alone: Newton-Schulz and Polar Express iterations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import torch
from torch import Tensor

from .scalar import per_tensor

__all__ = ["QUINTIC", "newton_schulz", "polar_express"]

Coefficients = tuple[float, float, float]

QUINTIC: Coefficients = (3.4445, -4.7750, 2.0315)
"""a, b, c of Jordan et al., 2024 (Muon): steepest at zero, singular values end between about 0.7 and 1.2."""

_SAFETY = 1.01
_LAST: Coefficients = (1.875, -1.25, 0.375)
_POLAR_EXPRESS: tuple[Coefficients, ...] = tuple(
    # A safety factor against rounding that pushes singular values over 1, as the paper has it.
    (a / _SAFETY, b / _SAFETY**3, c / _SAFETY**5)
    for a, b, c in (
        (8.28721201814563, -23.595886519098837, 17.300387312530933),
        (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
        (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
        (3.3184196573706015, -2.488488024314874, 0.51004894012372),
        (2.300652019954817, -1.6689039845747493, 0.4188073119525673),
        (1.891301407787398, -1.2679958271945868, 0.37680408948524835),
        (1.8750014808534479, -1.2500016453999487, 0.3750001645474248),
    )
)
"""Amsel et al., 2025 (arXiv:2505.16932): the best odd polynomial of degree 5 for each step."""


@per_tensor
def newton_schulz(
    matrix: Tensor,
    steps: int = 5,
    coefficients: Coefficients | Sequence[Coefficients] = QUINTIC,
    eps: float = 1e-7,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Approximately UVᵀ of G = UΣVᵀ, as a new tensor [..., r, c] in the dtype of G.

    X ← G/‖G‖;  X ← a·X + b·(XXᵀ)X + c·(XXᵀ)²X, ``steps`` times, on the wide side. A zero matrix gives zeros.

    Args:
        matrix: G [..., r, c], real; leading dimensions are a stack of matrices.
        steps: how many iterations.
        coefficients: (a, b, c), or one triple a step.
        eps: the least norm that G is divided by.
        dtype: of the products; bfloat16 in Muon. None for that of G.

    Raises:
        ValueError: for fewer than two dimensions, or another number of triples than ``steps``.
    """
    if not isinstance(coefficients[0], tuple):
        triples: list[Coefficients] = list(repeat(coefficients, steps))  # type: ignore[arg-type]
    else:
        triples = list(coefficients)  # type: ignore[arg-type]
        if len(triples) != steps:
            raise ValueError(f"newton_schulz: {len(triples)} triples of coefficients for {steps} steps")
    return _iterate(matrix, triples, 1.0, eps, dtype)


@per_tensor
def polar_express(matrix: Tensor, steps: int = 5, eps: float = 1e-7, dtype: torch.dtype | None = None) -> Tensor:
    """UVᵀ of G = UΣVᵀ: :func:`newton_schulz` with the optimal polynomial at each step, which converges.

    Args:
        matrix: G [..., r, c], real; leading dimensions are a stack of matrices.
        steps: how many iterations; 5 as in the paper's Muon, 8 and more to convergence.
        eps: the least norm that G is divided by.
        dtype: of the products; None for that of G.

    Raises:
        ValueError: for fewer than two dimensions.
    """
    triples = [*_POLAR_EXPRESS[:steps], *repeat(_LAST, max(steps - len(_POLAR_EXPRESS), 0))]
    return _iterate(matrix, triples, _SAFETY, eps, dtype)


def _iterate(
    matrix: Tensor, triples: Sequence[Coefficients], safety: float, eps: float, dtype: torch.dtype | None
) -> Tensor:
    if matrix.ndim < 2:
        raise ValueError(f"a tensor of shape {tuple(matrix.shape)} is no matrix; reshape it to two dimensions first")
    tall = matrix.size(-2) > matrix.size(-1)
    x = matrix.to(dtype or matrix.dtype)
    if tall:
        x = x.mT
    # The norm bounds the largest singular value; the iteration diverges above 1.
    norm: Tensor = torch.linalg.vector_norm(x, dim=(-2, -1), keepdim=True)
    x = x / (norm * safety).clamp(min=eps)
    shape = x.shape
    if x.ndim > 3:
        x = x.reshape(-1, *shape[-2:])
    # Fused sums of products: in bfloat16 each separate sum would be rounded once more.
    add_product = torch.addmm if x.ndim == 2 else torch.baddbmm
    for a, b, c in triples:
        gram = x @ x.mT
        x = add_product(x, add_product(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    x = x.reshape(shape)
    return (x.mT if tall else x).to(matrix.dtype)
