"""A small GPT: pre-norm transformer, causal attention, the output layer tied to the embedding."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["GPT"]

WEIGHT_STD = 0.02


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp_in = nn.Linear(width, 4 * width)
        self.mlp_out = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attention_out(mixed.transpose(1, 2).reshape(batch, length, width))
        out: Tensor = x + self.mlp_out(functional.gelu(self.mlp_in(self.norm2(x))))
        return out


class GPT(nn.Module):
    """Tokens (batch, length) to logits (batch, length, vocabulary).

    Args:
        vocabulary: number of tokens.
        context: longest length.
        width: features of a position.
        depth: number of blocks.
        heads: attention heads a block.
    """

    def __init__(self, vocabulary: int, context: int, *, width: int = 96, depth: int = 3, heads: int = 4) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.position_embedding = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(_Block(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        for name, p in self.named_parameters():
            if p.ndim == 2:
                # Each block adds twice to the residual stream: its last layers start smaller, so that the sum does not grow.
                nn.init.normal_(p, std=WEIGHT_STD / (2 * depth) ** 0.5 if "_out." in name else WEIGHT_STD)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.token_embedding(tokens) + self.position_embedding(positions)
        return functional.linear(self.norm(self.blocks(x)), self.token_embedding.weight)
