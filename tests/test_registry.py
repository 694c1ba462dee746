"""Look-ups, and plugins that do everything wrong without breaking the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import zoo
from zoo import registry

BROKEN = {
    "importerror": ("raise ImportError('half installed')", "ImportError: half installed"),
    "missing": ("import a_module_that_nobody_has", "No module named 'a_module_that_nobody_has'"),
    "exits": ("import sys; sys.exit(3)", "SystemExit: 3"),
    "oldapi": ("ZOO_API = 99", "made for version 99 of the plugin API"),
    "wrongtype": ("from zoo import hookimpl\n@hookimpl\ndef zoo_optimizers():\n    return 5", "not int"),
    "notspecs": ("from zoo import hookimpl\n@hookimpl\ndef zoo_optimizers():\n    return ['adam']", "not str"),
    "halfway": (
        "from zoo import OptimizerSpec, hookimpl\n@hookimpl\ndef zoo_optimizers():\n"
        "    yield OptimizerSpec('halfway', 'nowhere:Nothing')\n    raise RuntimeError('in the middle')",
        "RuntimeError: in the middle",
    ),
    "prints": ("print('look at me')\nfrom zoo import hookimpl\n@hookimpl\ndef zoo_optimizers():\n    return []", ""),
}


def install(site: Path, name: str, code: str) -> None:
    """A distribution as pip leaves it: a module and its metadata."""
    (site / f"fake_{name}.py").write_text(code)
    info = site / f"fake_{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: fake-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[zoo.plugins]\n{name} = fake_{name}\n")


def run(site: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", *command],
        env={**os.environ, "PYTHONPATH": str(site), **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=site,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for name, (code, _) in BROKEN.items():
        install(folder, name, code)
    good = (
        "from zoo import OptimizerSpec, hookimpl\n@hookimpl\ndef zoo_optimizers():\n"
        "    yield OptimizerSpec('adam', 'zoo_plugins.sign.lion:Lion')\n"
        "    yield OptimizerSpec('ghost', 'fake_clash:Ghost')\n    yield OptimizerSpec('number', 'math:pi')"
    )
    install(folder, "clash", good)
    return folder


def test_broken_plugins_leave_the_others_alone(site: Path) -> None:
    done = run(site, "-c", "import zoo; print('lion' in zoo.list_optimizers(), 'halfway' in zoo.list_optimizers())")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True False\n"


def test_doctor_names_each_with_distribution_cause_and_remedy_and_exits_1(site: Path) -> None:
    done = run(site, "-m", "zoo.cli", "doctor")
    assert done.returncode == 1, done.stderr
    for name, (_, cause) in BROKEN.items():
        if cause:
            assert f"{name} of fake-{name}: " in done.stdout
            assert cause in done.stdout
    assert "remedy: install a_module_that_nobody_has, which fake-missing needs" in done.stdout
    assert "adam: is in fake-clash, optimizer-zoo\n  remedy: ask for one as fake-clash:adam" in done.stdout
    assert "ghost: optimizer 'ghost' of fake-clash can't be loaded" in done.stdout


def test_a_warning_names_the_broken_ones_once(site: Path) -> None:
    code = "import warnings; warnings.simplefilter('always'); import zoo; zoo.list_optimizers(); zoo.list_optimizers()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
        cwd=site,
    )
    assert done.stderr.count("plugins that could not be loaded") == 1
    assert "importerror of fake-importerror (ImportError: half installed)" in done.stderr
    assert done.stdout == ""  # what a plugin prints at import is not passed on


def test_strict_mode_raises_what_the_plugin_raised(site: Path) -> None:
    done = run(site, "-c", "import zoo; zoo.list_optimizers()", ZOO_STRICT="1")
    assert done.returncode == 3  # fake-exits comes first, and its sys.exit(3) is let through


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("adam", "AmbiguousOptimizerError", "fake-clash:adam, optimizer-zoo:adam"),
        ("ghost", "PluginError", "optimizer 'ghost' of fake-clash can't be loaded from 'fake_clash:Ghost'"),
        ("number", "PluginError", "math:pi is no zoo.BaseOptimizer"),
        ("halfway", "UnknownOptimizerError", "plugins that could not be loaded"),
    ],
)
def test_what_a_plugin_gets_wrong_is_said_when_it_is_needed(site: Path, name: str, error: str, message: str) -> None:
    done = run(site, "-c", f"import zoo; zoo.optimizer_class({name!r})")
    assert error in done.stderr
    assert message in done.stderr


def test_a_qualified_name_picks_one_of_two(site: Path) -> None:
    code = "import zoo; print(zoo.optimizer_class('optimizer-zoo:adam').__name__, zoo.optimizer_class('fake-clash:adam').__name__)"
    assert run(site, "-c", code).stdout == "Adam Lion\n"


def test_the_same_plugin_on_two_paths_is_one(site: Path, tmp_path: Path) -> None:
    install(tmp_path, "prints", BROKEN["prints"][0])
    code = "import json; from zoo import registry; print(json.dumps([p.name for p in registry.plugins()]))"
    done = run(site, "-c", code, PYTHONPATH=f"{tmp_path}{os.pathsep}{tmp_path}")
    assert json.loads(done.stdout).count("prints") == 1


@pytest.mark.parametrize(
    "spelled", ["adamw", "AdamW", "Adam-W".replace("-", ""), " adamw ", "ADAMW_HF", "adamw-hf", "adamw hf"]
)
def test_names_ignore_case_dashes_and_spaces(spelled: str) -> None:
    assert zoo.optimizer_spec(spelled).name == "adamw"


def test_an_unknown_name_gets_the_three_closest_and_how_to_list_all() -> None:
    with pytest.raises(zoo.UnknownOptimizerError) as caught:
        zoo.create_optimizer("adamx2", [])
    assert isinstance(caught.value, KeyError)
    assert isinstance(caught.value, ValueError)
    assert len(caught.value.closest) == 3
    assert "adam" in caught.value.closest[0]
    assert "zoo.list_optimizers()" in str(caught.value)


def test_listing_filters_by_pattern_family_and_tag() -> None:
    assert zoo.list_optimizers("adam?") == [
        name for name in zoo.list_optimizers() if name[:4] == "adam" and len(name) == 5
    ]
    assert zoo.list_optimizers(family="schedule_free") == zoo.list_optimizers("schedule_free_*")
    assert "prodigy" in zoo.list_optimizers(tag="parameter-free")
    assert zoo.list_optimizers("no*such") == []


def test_a_module_gives_its_trainable_parameters_with_names_and_once() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    model[1].weight = model[0].weight
    model[0].bias.requires_grad_(False)
    opt = zoo.create_optimizer("adam", model)
    assert opt.param_groups[0]["param_names"] == ["0.weight", "1.bias"]


def test_a_mapping_is_a_name_with_options_and_is_not_changed() -> None:
    config: dict[str, Any] = {"name": "adamw", "lr": "1e-2", "betas": [0.8, 0.9]}
    opt = zoo.create_optimizer(config, [torch.nn.Parameter(torch.ones(2))], lr=0.5)
    assert opt.param_groups[0]["lr"] == 0.5
    assert opt.param_groups[0]["betas"] == (0.8, 0.9)
    assert config == {"name": "adamw", "lr": "1e-2", "betas": [0.8, 0.9]}
    with pytest.raises(ValueError, match="needs the key 'name'"):
        zoo.create_optimizer({"lr": 1}, [])


def test_registering_at_run_time() -> None:
    spec = zoo.OptimizerSpec("lion_again", "zoo_plugins.sign.lion:Lion", aliases=["once-more"])
    with zoo.registered(spec):
        assert zoo.register(spec) is spec  # the same again changes nothing
        assert zoo.optimizer_spec("Once More") is spec
        with pytest.raises(ValueError, match="already an optimizer of runtime"):
            zoo.register(zoo.OptimizerSpec("lion_again", "zoo_plugins.adaptive.adam:Adam"))
    assert "lion_again" not in zoo.list_optimizers()
    with pytest.raises(ValueError, match="already an optimizer of optimizer-zoo"):
        zoo.register(zoo.OptimizerSpec("adam", "zoo_plugins.sign.lion:Lion"))
    with pytest.raises(KeyError, match="not registered"):
        zoo.unregister("adam")
    zoo.optimizer_class("lion")  # give the class its own name back


def test_every_spec_is_complete() -> None:
    for name in zoo.list_optimizers():
        spec = registry.optimizer_spec(name)
        assert spec.summary.endswith("."), name
        assert spec.paper is not None, name
        assert spec.family, name
        cls = zoo.optimizer_class(name)
        assert cls.__doc__, name
        for field, info in cls.Config.model_fields.items():
            assert info.description, f"{name}.{field} has no help"
