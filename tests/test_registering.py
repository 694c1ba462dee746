"""Registering at run time: with a spec, over a class, in a notebook; and seeing what was installed since."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import zoo
from zoo import Granularity, OptimizerConfig, helpers, registry


def new_class(name: str = "SlowSGD", scale: float = 1.0) -> type[Any]:
    """A class as a notebook's cell would define it, inside a function so that no import finds it."""

    class SlowSGD(zoo.BaseOptimizer[OptimizerConfig], rule=Granularity.ELEMENTWISE):
        """Plain descent."""

        def update(self, g: Tensor, p: Tensor, s: zoo.State, c: zoo.Scalars) -> helpers.Scaled:
            return helpers.scaled(g, c.lr * scale)

    SlowSGD.__name__ = name
    SlowSGD.__qualname__ = f"new_class.<locals>.{name}"
    return SlowSGD


@pytest.fixture(autouse=True)
def _leaves_nothing() -> Iterator[None]:
    before = zoo.list_optimizers()
    yield
    for name in set(zoo.list_optimizers()) - set(before):
        zoo.unregister(name)
    assert zoo.list_optimizers() == before


def step_of(name: str) -> float:
    p = torch.nn.Parameter(torch.zeros(1))
    p.grad = torch.ones(1)
    zoo.create_optimizer(name, [p], lr=1.0).step()
    return -float(p.detach())


def test_a_decorator_takes_the_name_from_the_class_or_from_its_argument() -> None:
    plain = zoo.register(new_class())
    assert zoo.optimizer_class("slow-sgd") is plain
    named = zoo.register("mine", summary="What I wrote.", aliases=["own"], family="notebook", tags=["x"])(new_class())
    assert zoo.optimizer_class("Own") is named
    assert zoo.optimizer_spec("mine").summary == "What I wrote."
    assert zoo.list_optimizers(family="notebook") == ["mine"]
    assert step_of("mine") == 1.0


@pytest.mark.parametrize(
    ("written", "name"), [("AdamX", "adam_x"), ("XQZW", "xqzw"), ("MyNewSGD", "my_new_sgd"), ("Lion2", "lion2")]
)
def test_the_name_of_a_class_as_a_name(written: str, name: str) -> None:
    zoo.register(new_class(written))
    assert zoo.optimizer_spec(written if written.isupper() else name).name == name


def test_a_cell_that_runs_twice_replaces_its_class() -> None:
    zoo.register("mine")(new_class(scale=1.0))
    assert step_of("mine") == 1.0
    zoo.register("mine")(new_class(scale=0.5))
    assert step_of("mine") == 0.5
    assert zoo.list_optimizers("mine") == ["mine"]


def test_what_has_an_owner_is_not_taken() -> None:
    zoo.register("mine", aliases=["own"])(new_class())
    for name, owner in (("adam", "optimizer-zoo"), ("ADAMW-hf", "optimizer-zoo"), ("own", "runtime")):
        with pytest.raises(ValueError, match=f"is already an optimizer of {owner}"):
            zoo.register(name)(new_class("Another"))
    with pytest.raises(ValueError, match="is already an optimizer of optimizer-zoo"):
        zoo.register("another", aliases=["lion"])(new_class("Another"))
    assert "another" not in zoo.list_optimizers()


def test_a_with_block_takes_specs_and_classes_and_forgets_them_after_an_error_too() -> None:
    with zoo.registered(new_class(), name="here", aliases=["now"]) as spec:
        assert zoo.optimizer_spec("now") is spec
        assert zoo.optimizer_spec("runtime:here") is spec
    with pytest.raises(RuntimeError, match="on purpose"), zoo.registered(new_class()):
        raise RuntimeError("on purpose")
    assert "slow_sgd" not in zoo.list_optimizers()


def test_a_registry_file_does_not_hide_what_is_registered_here() -> None:
    zoo.register("mine")(new_class())
    assert zoo.list_optimizers("mine", registry={"version": 1, "plugins": {"enable": ["lion"]}}) == ["mine"]


def test_what_is_no_class_of_the_zoo_is_named_when_it_is_used() -> None:
    zoo.register("foreign")(torch.optim.Adam)
    with pytest.raises(zoo.PluginError, match="'foreign' of runtime: .*Adam is no zoo.BaseOptimizer"):
        zoo.create_optimizer("foreign", [])


def test_refresh_finds_what_was_installed_since_and_keeps_what_was_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zoo.register("mine")(new_class())
    assert "fresh" not in zoo.list_optimizers()
    info = tmp_path / "zoo_fresh-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: zoo-fresh\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[zoo.plugins]\nfresh = zoo_fresh\n")
    (tmp_path / "zoo_fresh.py").write_text(
        "from zoo import OptimizerSpec, hookimpl\n@hookimpl\n"
        "def zoo_optimizers(): return [OptimizerSpec('fresh', 'zoo_plugins.sign.lion:Lion')]"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.refresh()
    try:
        assert {"fresh", "mine", "adam"} <= set(zoo.list_optimizers())
    finally:
        monkeypatch.undo()
        registry.refresh()


@pytest.mark.parametrize("name", ["", "  ", "a:b", 5])
def test_what_is_no_name_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="is no name"):
        zoo.OptimizerSpec(name, "package.module:Class")


@pytest.mark.parametrize("target", ["package.module", "package:", ":Class", "a/b:C", None])
def test_what_is_no_target_is_refused(target: Any) -> None:
    with pytest.raises(ValueError, match=r"must read 'package\.module:Class'"):
        zoo.OptimizerSpec("name", target)


@pytest.mark.parametrize("name", [None, 5, torch.optim.Adam])
def test_asking_by_something_else_than_a_name_is_a_type_error(name: Any) -> None:
    with pytest.raises(TypeError, match="asked for by its name"):
        zoo.create_optimizer(name, [])
