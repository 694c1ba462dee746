"""Sparse gradients, where a rule takes them, are what torch makes of them."""

from __future__ import annotations

import pytest
import torch

import zoo

REFERENCES = {
    "sgd": torch.optim.SGD,
    "sgdw": torch.optim.SGD,
    "adagrad": torch.optim.Adagrad,
    "sparse_adam": torch.optim.SparseAdam,
}
NAMES = [name for name in zoo.list_optimizers() if zoo.optimizer_class(name).supports_sparse]


def embeddings() -> tuple[torch.nn.Embedding, torch.nn.Embedding]:
    torch.manual_seed(0)
    first, second = torch.nn.Embedding(6, 3, sparse=True), torch.nn.Embedding(6, 3, sparse=True)
    second.load_state_dict(first.state_dict())
    return first, second


@pytest.mark.parametrize("options", [{}, {"maximize": True}])
@pytest.mark.parametrize("name", NAMES)
def test_the_trajectory_is_torchs(name: str, options: dict[str, bool]) -> None:
    ours, theirs = embeddings()
    opt = zoo.create_optimizer(name, ours.parameters(), lr=0.1, **options)
    reference = REFERENCES[name](theirs.parameters(), lr=0.1, **options)
    for rows in ([0, 2, 2], [1, 2], [5, 5, 5, 0]):
        for model, optimizer in ((ours, opt), (theirs, reference)):
            optimizer.zero_grad()
            model(torch.tensor(rows)).square().sum().backward()
            assert model.weight.grad.is_sparse
            optimizer.step()
        torch.testing.assert_close(ours.weight, theirs.weight)


@pytest.mark.parametrize("name", NAMES)
def test_an_option_that_needs_a_dense_gradient_says_so_and_changes_nothing(name: str) -> None:
    model, _ = embeddings()
    before = model.weight.detach().clone()
    opt = zoo.create_optimizer(name, model.named_parameters(), lr=0.1, clip_norm=1.0)
    model(torch.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match=r"clip_norm is not compatible with sparse gradients \(parameter 'weight'\)"):
        opt.step()
    assert torch.equal(model.weight, before)
    assert not opt.state


@pytest.mark.parametrize("name", ["adamw", *NAMES])
def test_densify_gives_what_a_dense_gradient_gives(name: str) -> None:
    model, twin = embeddings()
    opt = zoo.create_optimizer(name, model.parameters(), lr=0.1, densify=True)
    reference = zoo.create_optimizer(name, twin.parameters(), lr=0.1)
    for rows in ([0, 2, 2], [1, 2]):
        opt.zero_grad()
        model(torch.tensor(rows)).square().sum().backward()
        twin.zero_grad()
        twin(torch.tensor(rows)).square().sum().backward()
        twin.weight.grad = twin.weight.grad.to_dense()
        opt.step()
        if name == "sparse_adam":
            continue  # it is lazy: a dense gradient also moves the rows that a sparse one leaves alone
        reference.step()
        torch.testing.assert_close(model.weight, twin.weight)
