"""Parameters sharded by FSDP2 over two ranks are stepped as one process would step them, by every optimizer.

One pair of processes serves the whole module: starting them is what costs.
"""

from __future__ import annotations

import copy
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

import zoo
from zoo.capabilities import capabilities_of

WORLD = 2
FEATURES: dict[str, dict[str, Any]] = {
    "adamw cautious": {"cautious": True},
    "adamw trust_ratio": {"trust_ratio": True},
    "adamw rms_clip": {"rms_clip": 0.5},
    "adamw amsgrad": {"amsgrad": True},
    "adamw adanorm": {"adanorm": 0.9},
    "adamw rectify": {"rectify": True},
    "adamw orthograd": {"orthograd": True},
    "adamw centralize": {"centralize": True},
    "adamw agc": {"agc": 0.1},
    "adamw clip_norm": {"clip_norm": 0.1},
    "adamw foreach": {"engine": "foreach"},
    "adamw loop": {"engine": "loop"},
}
NAMES = [
    name
    for name in zoo.list_optimizers()
    if not (c := capabilities_of(zoo.optimizer_class(name))).closure and not c.create_graph
]
CASES = {**{name: {} for name in NAMES}, **FEATURES}


def _model() -> nn.Module:
    torch.manual_seed(0)
    # Rows that two ranks can't share evenly, and a bias of which the second rank gets nothing.
    return nn.Sequential(nn.Linear(8, 7), nn.Tanh(), nn.Linear(7, 1))


def _train(name: str, options: dict[str, Any], model: nn.Module, inputs: torch.Tensor, late: bool = False) -> None:
    opt: Any = zoo.create_optimizer(name.split()[0], model.parameters(), **options)
    if hasattr(opt, "train"):
        opt.train()
    for _ in range(3):
        opt.zero_grad()
        model(inputs).square().sum().backward()
        opt.step()


def _rank(rank: int, port: int, folder: str) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD)
    mesh = init_device_mesh("cpu", (WORLD,))
    inputs = torch.randn(5, 8, generator=torch.Generator().manual_seed(1))
    results: dict[str, str] = {}
    for name, options in CASES.items():
        for kind in ("sharded", "mixed"):
            model = _model()
            reference = copy.deepcopy(model)
            ignored = {model[0].bias} if kind == "mixed" else set()  # one plain tensor among sharded ones
            fully_shard(model, mesh=mesh, ignored_params=ignored)
            try:
                _train(name, options, model, inputs)
                _train(name, {**options, "engine": "loop"}, reference, inputs)
                worst = 0.0
                for p, q in zip(model.parameters(), reference.parameters(), strict=True):
                    whole = p.full_tensor() if hasattr(p, "full_tensor") else p
                    worst = max(worst, float((whole - q).abs().max()))
                results[f"{name} {kind}"] = f"{worst:.3g}"
            except Exception as error:
                results[f"{name} {kind}"] = f"{type(error).__name__}: {error}"
    if rank == 0:
        torch.save(results, Path(folder) / "results.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("sharded")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.start_processes(_rank, (port, str(folder)), WORLD, start_method="spawn")
    loaded: dict[str, str] = torch.load(folder / "results.pt")
    return loaded


@pytest.mark.parametrize("kind", ["sharded", "mixed"])
@pytest.mark.parametrize("name", CASES)
def test_sharded_parameters_are_stepped_as_whole_ones(name: str, kind: str, results: dict[str, str]) -> None:
    found = results[f"{name} {kind}"]
    try:
        error = float(found)
    except ValueError:
        pytest.fail(found)
    assert error < 1e-5
