"""The momentum family where no reference trajectory speaks: the papers' formulas, written out over plain numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import Parameter

import zoo

STEPS = 5


def start(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def gradients(*shape: int, count: int = STEPS) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(4)
    for _ in range(count):
        yield torch.randn(shape, generator=generator, dtype=torch.float64)


def trained(name: str, *shape: int, **options: Any) -> Tensor:
    """The weights after some steps."""
    p = Parameter(start(*shape))
    opt = zoo.create_optimizer(name, [p], **options)
    for g in gradients(*shape):
        p.grad = g
        opt.step()
    return p.detach()


def same(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


# The papers' rules


def test_pid_differences_start_with_the_second_gradient() -> None:
    p, total, slope, last = start(4), torch.zeros(4), torch.zeros(4), None
    for g in gradients(4):
        total = 0.8 * total + g
        slope = 0.8 * slope + 0.2 * (g - last if last is not None else 0 * g)
        p, last = p - 0.01 * (g + 5 * total + 10 * slope), g
    same(trained("pid", 4, lr=0.01, momentum=0.8), p)


def test_srmm_minimizes_the_average_of_its_models() -> None:
    p, models = start(4), []
    for t, g in enumerate(gradients(4)):
        weight = (1 + t % 3) ** -0.5  # memory_length 3: the fourth step forgets all before it
        models = [(w * (1 - weight), at, slope) for w, at, slope in models] + [(weight, p, g)]
        assert math.isclose(sum(w for w, _, _ in models), 1.0)
        # The minimum of Σ w (⟨g, θ⟩ + ‖θ − at‖²/2γ)
        p = sum((w * (at - 0.1 * slope) for w, at, slope in models), torch.zeros(4))
    same(trained("srmm", 4, lr=0.1, memory_length=3), p)


def test_srmm_without_memory_length_never_forgets() -> None:
    p = mean_p = mean_g = start(4) * 0
    p = start(4)
    for t, g in enumerate(gradients(4), start=1):
        mean_p, mean_g = mean_p + (p - mean_p) / t, mean_g + (g - mean_g) / t
        p = mean_p - 0.1 * mean_g
    same(trained("srmm", 4, lr=0.1, beta=1.0, memory_length=None), p)


def test_tam_takes_the_cosine_of_the_whole_tensor() -> None:
    p, m, s = start(4, 3), torch.zeros(4, 3, dtype=torch.float64), 0.0
    for g in gradients(4, 3):
        size = float(m.norm() * g.norm())
        s = 0.9 * s + 0.1 * (float((m * g).sum()) / size if size else 0.0)
        m = 0.9 * m + (1e-8 + (1 + s) / 2) * g
        p = p - 0.05 * m
    same(trained("tam", 4, 3, lr=0.05), p)


SCALES: dict[str, Callable[[list[float]], float]] = {
    "a2grad_uni": lambda noise: sum(noise) ** 0.5,
    "a2grad_inc": lambda noise: sum(d * ((k + 1) / len(noise)) ** 2 for k, d in enumerate(noise)) ** 0.5,
    "a2grad_exp": lambda noise: (len(noise) * max(_averages(noise))) ** 0.5,
}


def _averages(noise: list[float]) -> list[float]:
    found = [0.0]
    for entry in noise:
        found.append(0.5 * found[-1] + 0.5 * entry)
    return found


@pytest.mark.parametrize("name", SCALES)
def test_a2grad_scales_every_coordinate_by_its_own_noise(name: str) -> None:
    expected = start(3)
    for i in range(3):
        theta = averaged = x = float(expected[i])
        seen: list[float] = []
        noise: list[float] = []
        for k, g in enumerate(float(g[i]) for g in gradients(3)):
            alpha, following = 2 / (k + 2), 2 / (k + 3)
            seen.append(g)
            noise.append((g - sum(seen) / len(seen)) ** 2)
            x_new = x - g / (2 * 10 / (k + 1) + 10 * SCALES[name](noise))
            # Three coupled sequences, as the paper has them: the average, x, and the point of the gradient.
            averaged = theta + alpha * (x_new - x)
            theta, x = (1 - following) * averaged + following * x_new, x_new
        expected[i] = theta
    same(trained(name, 3), expected)


def test_gravity_without_a_random_start() -> None:
    p, v = start(4), torch.zeros(4, dtype=torch.float64)
    for t, g in enumerate(gradients(4), start=1):
        keep = (0.9 * t + 1) / (t + 2)
        v = keep * v + (1 - keep) * g / (1 + (g * g.abs().max()) ** 2)
        p = p - 0.1 * v
    same(trained("gravity", 4, alpha=0.0), p)


def test_gravitys_random_start_is_of_the_size_asked_for_and_repeats_by_seed() -> None:
    def displaced(seed: int) -> Tensor:
        p = Parameter(torch.zeros(100, 100))
        opt = zoo.create_optimizer("gravity", [p], seed=seed, alpha=0.5)
        p.grad = torch.full_like(p, 1e-12)
        p.grad[0] = 0.0
        opt.step()
        return p.detach()

    moved = displaced(1)
    keep = (0.9 + 1) / 3
    assert torch.equal(moved[0], torch.zeros(100))  # no gradient, no start
    assert float(moved[1:].std()) == pytest.approx(0.5 * keep, rel=0.05)
    assert abs(float(moved[1:].mean())) < 0.02
    assert torch.equal(moved, displaced(1))
    assert not torch.equal(moved, displaced(2))


# SWATS


def swats(tolerance: float, steps: int, **options: Any) -> tuple[Any, list[Tensor], list[Tensor]]:
    """The optimizer, its weights after every step, and Adam's."""
    p, q = Parameter(start(4, 3)), Parameter(start(4, 3))
    opt = zoo.create_optimizer("swats", [p], lr=0.01, tolerance=tolerance, **options)
    adam = zoo.create_optimizer("adam", [q], lr=0.01, eps=1e-12)
    ours, theirs = [], []
    for g in gradients(4, 3, count=steps):
        p.grad, q.grad = g + 2, g + 2  # a direction that all agree on, so that the projection is positive
        opt.step()
        adam.step()
        ours.append(p.detach().clone())
        theirs.append(q.detach().clone())
    return opt, ours, theirs


def test_swats_is_adam_until_the_rate_has_settled() -> None:
    opt, ours, theirs = swats(tolerance=0.0, steps=6)
    assert float(opt.param_groups[0]["sgd_rate"]) == 0.0
    torch.testing.assert_close(ours[-1], theirs[-1], rtol=1e-6, atol=1e-8)
    assert opt.effective_lr() == [0.01]


def test_swats_goes_on_as_sgd_at_the_rate_that_adams_steps_project_to() -> None:
    opt, ours, theirs = swats(tolerance=1e9, steps=4)  # settled as soon as there are two estimates to compare
    torch.testing.assert_close(ours[1], theirs[1], rtol=1e-6, atol=1e-8)
    rates = []
    for before, after, g in zip([start(4, 3), theirs[0]], theirs[:2], gradients(4, 3), strict=False):
        step, g = before - after, g + 2
        rates.append(float((step * step).sum() / (step * g).sum()))
    rate = (0.999 * rates[0] + rates[1]) * 0.001 / (1 - 0.999**2)
    assert opt.effective_lr() == [pytest.approx(rate, rel=1e-6)]
    p, momentum = ours[1], 0.0
    for index, g in enumerate(gradients(4, 3, count=4)):
        if index >= 2:
            momentum = 0.9 * momentum + (g + 2)
            p = p - 0.1 * rate * momentum
            torch.testing.assert_close(ours[index], p, rtol=1e-6, atol=1e-8)


def test_swats_switches_all_parameters_together() -> None:
    params = [Parameter(start(3)), Parameter(start(2, 2))]
    opt: Any = zoo.create_optimizer("swats", [{"params": params[:1]}, {"params": params[1:], "lr": 0.1}], tolerance=1e9)
    for _ in range(3):
        for p in params:
            p.grad = torch.ones_like(p)
        opt.step()
    first, second = (float(group["sgd_rate"]) for group in opt.param_groups)
    assert first == second > 0


# Bounds, projections, ratios


def test_fromage_keeps_norms_within_their_bound() -> None:
    p = Parameter(start(4, 3))
    size = float(p.detach().norm())
    opt = zoo.create_optimizer("fromage", [p], lr=0.5, p_bound=1.1)
    norms = []
    for _ in range(6):
        p.grad = -p.detach()  # outwards
        opt.step()
        norms.append(float(p.detach().norm()))
    assert max(norms) == pytest.approx(1.1 * size)
    free = trained("fromage", 4, 3, lr=0.5)
    same(trained("fromage", 4, 3, lr=0.5, p_bound=100.0), free)


def test_fromage_bounds_nothing_that_starts_at_zero() -> None:
    p = Parameter(torch.zeros(3))
    opt = zoo.create_optimizer("fromage", [p], p_bound=1.0)
    for _ in range(2):
        p.grad = torch.ones(3)
        opt.step()
    assert float(p.detach().abs().min()) > 0.005


def test_nero_balances_neurons_that_have_gradients() -> None:
    p = Parameter(start(4, 3))
    opt = zoo.create_optimizer("nero", [p])
    before = p.detach().clone()
    p.grad = torch.ones_like(p) * torch.tensor([1.0, 2.0, 3.0])
    p.grad[1] = 0.0
    opt.step()
    rows = p.detach()[[0, 2, 3]]
    torch.testing.assert_close(rows.norm(dim=1), torch.ones(3, dtype=torch.float64), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(rows.mean(1), torch.zeros(3, dtype=torch.float64), rtol=0, atol=1e-7)
    assert torch.equal(p.detach()[1], before[1])


def test_nero_leaves_neurons_of_one_weight_unconstrained() -> None:
    same(trained("nero", 4, 1), trained("nero", 4, 1, constraints=False))


def test_sgdp_decays_scale_invariant_weights_less() -> None:
    p, q = Parameter(start(4, 3)), Parameter(start(4, 3))
    for weights, wd_ratio in ((p, 0.1), (q, 1.0)):
        opt = zoo.create_optimizer("sgdp", [weights], lr=0.5, weight_decay=0.2, momentum=0.5, wd_ratio=wd_ratio)
        g = next(gradients(4, 3))
        w = weights.detach()
        weights.grad = g - w * ((g * w).sum(1) / (w * w).sum(1)).unsqueeze(1)  # orthogonal to every row
        opt.step()
    same(p.detach() - q.detach(), start(4, 3) * 0.5 * 0.2 / (1 - 0.5) * 0.9)


def test_sgdp_without_projection_is_sgd() -> None:
    same(trained("sgdp", 7, lr=0.1, momentum=0.9), trained("sgd", 7, lr=0.1, momentum=0.9))


def test_lars_adapts_as_asked() -> None:
    plain = trained("sgd", 4, 3, lr=0.1)
    same(trained("lars", 4, 3, lr=0.1, momentum=0.0, always_adapt=False), plain)
    assert not torch.allclose(trained("lars", 4, 3, lr=0.1, momentum=0.0), plain)
    # A ratio far above the learning rate is clipped to it.
    same(trained("lars", 4, 3, lr=0.1, momentum=0.0, trust_coeff=1e6, trust_clip=True), plain)


def test_sgd_sai_waits_for_a_gradient_that_is_not_zero() -> None:
    p, q = Parameter(start(4, 3)), Parameter(start(4, 3))
    late, plain = (zoo.create_optimizer("sgd_sai", [w], weight_decay=0.0) for w in (p, q))
    p.grad = torch.zeros_like(p)
    late.step()
    for g in gradients(4, 3):
        p.grad, q.grad = g, g
        late.step()
        plain.step()
    same(p.detach(), q.detach())


# FTRL


def test_ftrl_stays_at_the_start_and_makes_zeros() -> None:
    p = Parameter(start(4))
    before = p.detach().clone()
    opt = zoo.create_optimizer("ftrl", [p], lr=0.1, beta=2.0)
    p.grad = torch.tensor([1.0, 0.0, 1e-12, -1.0], dtype=torch.float64)
    opt.step()
    assert float(p.detach()[1]) == float(before[1])
    assert float(p.detach()[2]) == pytest.approx(float(before[2]))
    assert p.detach()[0] < before[0]
    assert p.detach()[3] > before[3]
    sparse = trained("ftrl", 50, lr=0.1, lambda_1=5.0)
    assert 0 < int((sparse == 0).sum()) < 50


def test_ftrl_of_any_power_is_the_papers_formula() -> None:
    p, n, z = start(4) * 0, torch.zeros(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
    for g in gradients(4):
        rate, old = (n + g * g) ** 0.3, n**0.3
        n, z = n + g * g, z + g - (rate - old) / 0.1 * p
        p = torch.where(z.abs() <= 0.2, 0.0, -(z - z.sign() * 0.2) / ((1 + rate) / 0.1 + 0.4))
    q = Parameter(start(4) * 0)
    opt = zoo.create_optimizer("ftrl", [q], lr=0.1, lr_power=-0.3, lambda_1=0.2, lambda_2=0.4)
    for g in gradients(4):
        q.grad = g
        opt.step()
    same(q.detach(), p)


# Relatives


def test_signum_with_momentum_zero_is_signsgd() -> None:
    expected = start(4) - 0.5 * sum((g.sign() for g in gradients(4)), torch.zeros(4, dtype=torch.float64))
    same(trained("signum", 4, lr=0.5, momentum=0.0), expected)


def test_madgrad_without_momentum_needs_no_start() -> None:
    p = Parameter(start(4))
    opt = zoo.create_optimizer("madgrad", [p], momentum=0.0)
    s = v = torch.zeros(4, dtype=torch.float64)
    for t, g in enumerate(gradients(4), start=1):
        p.grad = g
        opt.step()
        weight = (0.01 + 1e-6) * t**0.5
        s, v = s + weight * g, v + weight * g * g
    same(p.detach(), start(4) - s / (v ** (1 / 3) + 1e-6))
    assert "x0" not in opt.state[p]


def test_mirror_madgrad_decays_z() -> None:
    p = Parameter(start(4))
    opt = zoo.create_optimizer("mirror_madgrad", [p], lr=0.1, weight_decay=0.5, decay_mode="decoupled")
    p.grad = torch.zeros_like(p)
    for _ in range(2):
        opt.step()
    same(opt.state[p]["z"], start(4) * (1 - 0.1 * 0.5) ** 2)


def test_kate_does_not_see_the_scale_of_the_data() -> None:
    # Data times 10: gradients times 10, weights over 10; the products of both stay as they were.
    moved = []
    for scale in (1.0, 10.0):
        p = Parameter(torch.zeros(4, dtype=torch.float64))
        opt = zoo.create_optimizer("kate", [p], eps=0.0)
        for g in gradients(4):
            p.grad = g * scale
            opt.step()
        moved.append(p.detach() * scale)
    same(moved[1], moved[0])


@pytest.mark.parametrize(
    ("name", "options", "what"),
    [
        ("aggmo", {"betas": (0.9, 0.9)}, "different"),
        ("aggmo", {"betas": ()}, "betas"),
        ("accsgd", {"kappa": 1.0, "xi": 10.0}, "kappa"),
        ("pnm", {"betas": (1.0, 1.0)}, "betas"),
        ("lars", {"nesterov": True, "momentum": 0.0}, "nesterov"),
        ("fromage", {"p_bound": 0.5}, "p_bound"),
        ("sgdp", {"momentum": 1.0}, "momentum"),
    ],
)
def test_what_makes_no_sense_is_refused(name: str, options: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        zoo.create_optimizer(name, [Parameter(torch.ones(2))], **options)
