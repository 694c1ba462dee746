"""Strangers' packages for real: each is built into a wheel, installed into a folder and met by a fresh process.

One folder holds a good plugin beside every kind of broken one, so that each test also shows that the others work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TABLE = """
from zoo import OptimizerSpec, hookimpl
{before}

@hookimpl
def zoo_optimizers():
    {body}
"""


def table(body: str, before: str = "") -> str:
    return TABLE.format(body=body, before=before)


def lists(*names: str, target: str = "zoo_plugins.sign.lion:Lion") -> str:
    return "return [" + ", ".join(f"OptimizerSpec({name!r}, {target!r})" for name in names) + "]"


HOOKS = '''
from zoo import hookimpl

ZOO_API = (1, 3)


class First:
    """Halves a learning rate of 8, and so comes before the one that refuses it."""

    @hookimpl(tryfirst=True)
    def zoo_configure(self, spec, options):
        if options.get("lr") == 8.0:
            options["lr"] = 4.0


class Last:
    """Sees what the others made of it."""

    @hookimpl(trylast=True)
    def zoo_configure(self, spec, options):
        seen.append((spec.name, options.get("lr")))

    @hookimpl
    def zoo_check(self, spec, options):
        if options.get("lr", 0) > 5:
            raise ValueError(f"{spec.name}: a learning rate of {options['lr']} is against the rules of this house")

    @hookimpl
    def zoo_created(self, spec, optimizer):
        seen.append((spec.name, type(optimizer).__name__))

    @hookimpl
    def zoo_race_tasks(self):
        from zoo.race.errors import RaceError
        from zoo.race.tasks import RaceTask

        def build(seed):
            raise RaceError(f"the data of seed {seed} are on another planet")

        yield RaceTask("planets", "Data that nobody has.", build, steps=3)


seen = []
first, last = First(), Last()
'''

PLUGINS: dict[str, str] = {
    "good": table(lists("good_step")),
    "importerror": "raise ImportError('half installed')",
    "missing": "import a_module_that_nobody_has",
    "attribute": "",
    "exits": "import sys; sys.exit(3)",
    "newer": "ZOO_API = 99\n" + table(lists("newer_step")),
    "older": "ZOO_API = (0, 0)\n" + table(lists("older_step")),
    "nonsense": "ZOO_API = 'one'\n" + table(lists("nonsense_step")),
    "wrongtype": table("return 5"),
    "notspecs": table("return ['adam']"),
    "halfway": table("yield OptimizerSpec('halfway_step', 'a:B'); raise RuntimeError('in the middle')"),
    "badname": table("yield OptimizerSpec('a:b', 'a:B')"),
    "badtarget": table("yield OptimizerSpec('ab', 'a.b')"),
    "twice": table("yield OptimizerSpec('same', 'a:B'); yield OptimizerSpec('same', 'a:C')"),
    "nohook": "def zoo_optimizers(): return []",
    "futurehook": "from zoo import hookimpl\n@hookimpl\ndef zoo_dream(): return 1",
    "badhook": "from zoo import hookimpl\n@hookimpl\ndef zoo_created(spec, optimiser): pass",
    "prints": table(lists("prints_step"), before="print('look at me')"),
    "slow": table(lists("slow_step"), before="import time; time.sleep(1.2)"),
    "ghost": table(lists("ghost_step", target="zoo_test_ghost:Ghost")),
    "noclass": table(lists("noclass_step", target="math:pi")),
    "raises": table(lists("raises_step", target="zoo_test_importerror:Step")),
    "clasha": table(lists("clash_step", "adam")),
    "clashb": table(lists("Clash-Step")),
    "aliases": table("yield OptimizerSpec('alias_step', 'zoo_plugins.sign.lion:Lion', aliases=['good step', 'adamw'])"),
    "hooks": HOOKS,
}

BROKEN: dict[str, tuple[str, str]] = {
    "importerror": ("ImportError: half installed", "report it to the authors of zoo-test-importerror, or uninstall it"),
    "missing": ("No module named 'a_module_that_nobody_has'", "install a_module_that_nobody_has, which zoo-test-missing needs"),
    "attribute": ("has no attribute 'plugin'", "report it to the authors"),
    "exits": ("SystemExit: 3", "report it to the authors"),
    "newer": ("made for version 99 of the plugin API, this zoo has version 1", "install a version of zoo-test-newer made for this zoo"),
    "older": ("made for version 0 of the plugin API", "install a version of zoo-test-older made for this zoo"),
    "nonsense": ("ZOO_API must be a version or a pair", "report it to the authors"),
    "wrongtype": ("must return OptimizerSpecs, not int", "report it to the authors"),
    "notspecs": ("must yield OptimizerSpecs, not str: 'adam'", "report it to the authors"),
    "halfway": ("RuntimeError: in the middle", "report it to the authors"),
    "badname": ("'a:b' is no name", "report it to the authors"),
    "badtarget": ("must read 'package.module:Class'", "report it to the authors"),
    "twice": ("lists 'same' twice, as a:B and a:C", "report it to the authors"),
    "nohook": ("implements no hook", "report it to the authors"),
    "futurehook": ("implements zoo_dream, which is no hook of this zoo", "report it to the authors"),
    "badhook": ("optimiser", "report it to the authors"),
    "gone": ("No module named 'zoo_test_gone'", "zoo-test-gone is half installed; reinstall it, or uninstall it"),
}  # fmt: skip

PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "zoo-test-{name}"
version = "1.{index}"
dependencies = ["optimizer-zoo"]

[project.entry-points."zoo.plugins"]
{entries}

[tool.setuptools]
py-modules = ["zoo_test_{name}"]
"""


def wheels(folder: Path, plugins: dict[str, str]) -> Path:
    """A wheel of each plugin, in one folder."""
    sources = []
    for index, (name, code) in enumerate(plugins.items()):
        source = folder / f"source-{name}"
        source.mkdir(parents=True)
        targets = {"hooks": {"first": ":first", "last": ":last"}, "attribute": {name: ":plugin"}}.get(name, {name: ""})
        entries = "\n".join(f'{entry} = "zoo_test_{name}{attribute}"' for entry, attribute in targets.items())
        (source / "pyproject.toml").write_text(PROJECT.format(name=name, index=index, entries=entries))
        (source / f"zoo_test_{name}.py").write_text(code)
        sources.append(str(source))
    out = folder / "wheels"
    out.mkdir()
    # The build backend itself, in one process: pip takes a second a package.
    code = (
        "import os, sys; from setuptools import build_meta; _, out, *sources = sys.argv\n"
        "for source in sources: os.chdir(source); build_meta.build_wheel(out)"
    )
    subprocess.run([sys.executable, "-c", code, str(out), *sources], check=True, capture_output=True)
    return out


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two folders of installed plugins, the metadata of some damaged as a crash or a bad disk would.

    The second holds a slow one, and entry points that can't be read, which torch itself does not survive everywhere.
    """
    folder = tmp_path_factory.mktemp("plugins")
    more = {name: table(lists(f"{name}_step")) for name in ("gone", "nometadata", "mojibake", "garbled", "binary")}
    out = wheels(folder, {**PLUGINS, **more})
    second_only = ("garbled", "binary", "slow")
    built = {path.name.split("-")[0].removeprefix("zoo_test_"): str(path) for path in out.glob("*.whl")}
    first, second = folder / "site", folder / "hard"
    pip("install", "--no-deps", "--target", str(first), *(built[name] for name in built if name not in second_only))
    pip("install", "--no-deps", "--target", str(second), *(built[name] for name in ("good", *second_only)))
    info = {name: next(folder.glob(f"*/zoo_test_{name}-*.dist-info")) for name in more}
    (first / "zoo_test_gone.py").unlink()
    (info["nometadata"] / "METADATA").unlink()
    (info["mojibake"] / "METADATA").write_bytes(b"Name: \xff\xfe\nVersion: \xff")
    (info["garbled"] / "entry_points.txt").write_text("[zoo.plugins]\nno equals sign\n")
    (info["binary"] / "entry_points.txt").write_bytes(b"[zoo.plugins]\nbinary = \xff\xfe\n")
    return first, second


@pytest.fixture
def site(sites: tuple[Path, Path]) -> Path:
    """The folder with every plugin that can be found."""
    return sites[0]


def run(site: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": str(site), **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=site,
    )


def python(site: Path, code: str, **environment: str) -> str:
    done = run(site, "-W", "ignore", "-c", code, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def report(sites: tuple[Path, Path]) -> Any:
    """What doctor says of them all."""
    done = run(sites[0], "-m", "zoo.cli", "doctor", "--json")
    assert done.returncode == 1, done.stderr
    return json.loads(done.stdout)


def test_the_good_ones_work_and_nothing_of_a_broken_one_is_kept(site: Path) -> None:
    listed = json.loads(python(site, "import json, zoo; print(json.dumps(zoo.list_optimizers()))"))
    strangers = {name for name in listed if name.lower().endswith("step")}
    kept = {"good", "prints", "ghost", "noclass", "raises", "alias", "nometadata", "mojibake"}
    assert strangers == {f"{name}_step" for name in kept} | {"zoo-test-clasha:clash_step", "zoo-test-clashb:Clash-Step"}
    assert {"lion", "sgd", "adamw", "optimizer-zoo:adam", "zoo-test-clasha:adam"} <= set(listed)
    assert "adam" not in listed


def test_a_good_one_trains(site: Path) -> None:
    code = (
        "import torch, zoo; p = torch.nn.Parameter(torch.ones(3)); p.grad = torch.ones(3);"
        "opt = zoo.create_optimizer('Good Step', [p], lr=0.25); opt.step(); print(p.tolist())"
    )
    assert python(site, code) == "[0.75, 0.75, 0.75]\n"


def test_doctor_lists_every_plugin_with_distribution_version_and_state(report: Any) -> None:
    plugins = {plugin["distribution"]: plugin for plugin in report["plugins"]}
    expected = {f"zoo-test-{name}" for name in (*PLUGINS, "gone", "nometadata", "mojibake") if name != "slow"}
    assert expected | {"optimizer-zoo"} == set(plugins)
    assert plugins["zoo-test-good"] == {
        "name": "good",
        "distribution": "zoo-test-good",
        "version": "1.0",
        "state": "ok",
        "optimizers": 1,
        "seconds": plugins["zoo-test-good"]["seconds"],
    }
    broken = {plugin["name"] for plugin in report["plugins"] if plugin["state"] == "broken"}
    assert broken == set(BROKEN)


@pytest.mark.parametrize("name", BROKEN)
def test_doctor_names_cause_and_remedy(report: Any, name: str) -> None:
    cause, remedy = BROKEN[name]
    (problem,) = [problem for problem in report["problems"] if problem["where"] == f"{name} of zoo-test-{name}"]
    assert cause in problem["cause"]
    assert remedy in problem["remedy"]


@pytest.mark.parametrize(
    ("where", "cause", "remedy"),
    [
        ("nometadata of zoo-test-nometadata", "its METADATA", "reinstall zoo-test-nometadata"),
        ("mojibake of zoo-test-mojibake", "its METADATA can't be read", "reinstall zoo-test-mojibake"),
        ("clash_step", "is in zoo-test-clasha, zoo-test-clashb", "prefer: {clash_step: zoo-test-clasha}"),
        ("adam", "is in optimizer-zoo, zoo-test-clasha", "ask for one as optimizer-zoo:adam"),
        ("ghost_step", "has no attribute 'Ghost'", "reinstall zoo-test-ghost, or report it to its authors"),
        ("noclass_step", "math:pi is no zoo.BaseOptimizer", "reinstall zoo-test-noclass"),
        ("raises_step", "ImportError: half installed", "reinstall zoo-test-raises"),
    ],
)
def test_doctor_names_what_only_use_would_show(report: Any, where: str, cause: str, remedy: str) -> None:
    (problem,) = [problem for problem in report["problems"] if problem["where"] == where]
    assert cause in problem["cause"]
    assert remedy in problem["remedy"]


def test_doctor_has_nothing_else_to_say(report: Any) -> None:
    assert len(report["problems"]) == len(BROKEN) + 7


def test_slow_plugins_and_unreadable_entry_points_are_named_and_the_others_work(sites: tuple[Path, Path]) -> None:
    code = "import zoo; print(zoo.list_optimizers('*step'), 'lion' in zoo.list_optimizers())"
    assert python(sites[1], code) == "['good_step', 'slow_step'] True\n"
    done = run(sites[1], "-m", "zoo.cli", "doctor", "--json")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    (slow,) = [plugin for plugin in report["plugins"] if plugin["name"] == "slow"]
    assert slow["state"] == "slow"
    assert slow["seconds"] > 1
    problems = {problem["where"]: problem["remedy"] for problem in report["problems"]}
    assert "should import torch and optimizers only where a target lives" in problems["slow of zoo-test-slow"]
    for name in ("garbled", "binary"):
        expected = f"its entry_points.txt can't be read; reinstall zoo-test-{name}, or uninstall it"
        assert problems[f"? of zoo-test-{name}"] == expected


def test_quick_doctor_imports_no_torch(site: Path) -> None:
    done = run(site, "-X", "importtime", "-m", "zoo.cli", "doctor", "--quick")
    assert done.returncode == 1
    assert " torch\n" not in done.stderr
    assert "ghost_step" not in done.stdout
    assert "remedy: install a_module_that_nobody_has" in done.stdout


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("clash_step", "AmbiguousOptimizerError", "zoo-test-clasha:clash_step, zoo-test-clashb:clash_step"),
        ("adam", "AmbiguousOptimizerError", "optimizer-zoo:adam, zoo-test-clasha:adam"),
        ("ghost_step", "PluginError", "'ghost_step' of zoo-test-ghost can't be loaded from 'zoo_test_ghost:Ghost'"),
        ("noclass_step", "PluginError", "'noclass_step' of zoo-test-noclass: math:pi is no zoo.BaseOptimizer"),
        ("raises_step", "PluginError", "'raises_step' of zoo-test-raises can't be loaded"),
        ("halfway_step", "UnknownOptimizerError", "halfway of zoo-test-halfway"),
        ("zoo-test-good:adam", "UnknownOptimizerError", "unknown optimizer 'zoo-test-good:adam'"),
    ],
)
def test_what_is_wrong_is_said_when_it_is_needed(site: Path, name: str, error: str, message: str) -> None:
    done = run(site, "-W", "ignore", "-c", f"import zoo; zoo.create_optimizer({name!r}, [])")
    assert done.returncode == 1
    assert error in done.stderr.splitlines()[-1]
    assert message in done.stderr


def test_asking_for_a_broken_plugin_by_its_name_gives_what_broke_it(site: Path) -> None:
    for name in ("importerror", "zoo-test-importerror:anything"):
        done = run(site, "-W", "ignore", "-c", f"import zoo; zoo.create_optimizer({name!r}, [])")
        assert "ImportError: half installed\n\nThe above exception was the direct cause" in done.stderr


def test_a_qualified_name_always_picks_one_and_loads_only_its_distribution(site: Path) -> None:
    code = (
        "import sys, zoo; print(zoo.optimizer_spec('ZOO_test_clashb:clash step').name,"
        "sorted(m for m in sys.modules if m.startswith('zoo_test_')))"
    )
    assert python(site, code) == "Clash-Step ['zoo_test_clashb']\n"


def test_a_registry_file_settles_clashes(site: Path, tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    path.write_text("version: 1\nprefer:\n  clash_step: zoo-test-clashb\n  adam: optimizer-zoo\n")
    code = "import zoo; print(zoo.optimizer_spec('clash-step').name, zoo.optimizer_class('adam').__name__)"
    assert python(site, code, ZOO_REGISTRY=str(path)) == "Clash-Step Adam\n"


def test_a_registry_file_keeps_plugins_from_loading(site: Path, tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    path.write_text("version: 1\nplugins: {enable: [optimizer-zoo, 'zoo-test-goo*']}\n")
    code = (
        "import sys, zoo; print(zoo.list_optimizers('*_step')); "
        "print([name for name in sys.modules if name.startswith('zoo_test_')])"
    )
    done = run(site, "-W", "error::UserWarning", "-c", code, ZOO_REGISTRY=str(path))
    assert done.stdout == "['good_step']\n['zoo_test_good']\n", done.stderr
    states = {
        plugin["name"]: plugin["state"]
        for plugin in json.loads(run(site, "-m", "zoo.cli", "doctor", "--json", "--registry", str(path)).stdout)[
            "plugins"
        ]
    }
    assert states["importerror"] == states["clasha"] == "disabled"
    assert states["good"] == states["sign"] == "ok"


def test_an_alias_never_takes_a_name_from_its_owner(site: Path) -> None:
    code = "import zoo; print(zoo.optimizer_spec('good_step').target, zoo.optimizer_spec('adamw').name)"
    assert python(site, code) == "zoo_plugins.sign.lion:Lion adamw\n"


def test_what_a_plugin_prints_reaches_no_output(site: Path) -> None:
    assert json.loads(run(site, "-m", "zoo.cli", "list", "--json").stdout)


def test_one_warning_names_the_broken_ones(site: Path) -> None:
    done = run(site, "-W", "always", "-c", "import zoo; zoo.list_optimizers(); zoo.list_optimizers('a*')")
    assert done.stderr.count("plugins that could not be loaded") == 1
    assert "importerror of zoo-test-importerror (ImportError: half installed)" in done.stderr
    line = run(site, "-m", "zoo.cli", "list", "lion").stderr
    assert line.startswith("zoo: plugins that could not be loaded: ")
    assert len(line.splitlines()) == 1


def test_strict_mode_raises_what_the_plugin_raised(site: Path) -> None:
    done = run(site, "-c", "import zoo; zoo.optimizer_spec('zoo-test-missing:x')", ZOO_STRICT="1")
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'a_module_that_nobody_has'"


def test_hooks_amend_check_and_see_in_their_order(site: Path) -> None:
    code = (
        "import torch, zoo; p = torch.nn.Parameter(torch.ones(1)); given = {'lr': 8.0};"
        "opt = zoo.create_optimizer('lion', [p], **given); import zoo_test_hooks as hooks;"
        "print(opt.param_groups[0]['lr'], given, hooks.seen)\n"
        "try: zoo.create_optimizer('lion', [p], lr=9.0)\n"
        "except ValueError as error: print(error)\n"
        "print(hooks.seen[2:])"
    )
    assert python(site, code).splitlines() == [
        "4.0 {'lr': 8.0} [('lion', 4.0), ('lion', 'Lion')]",
        "lion: a learning rate of 9.0 is against the rules of this house",
        "[('lion', 9.0)]",
    ]


def test_a_plugin_brings_a_task_to_race_on(site: Path, tmp_path: Path) -> None:
    done = run(
        site, "-m", "zoo.cli", "race", "lion", "--task", "planets", "--seed", "7", "--out", str(tmp_path / "race")
    )
    assert done.returncode != 0
    assert "the data of seed 7 are on another planet" in done.stderr


def test_one_distribution_on_two_paths_is_one(site: Path, tmp_path: Path) -> None:
    code = "from zoo import registry; print(sum(p.distribution == 'zoo-test-good' for p in registry.plugins()))"
    (tmp_path / "again").symlink_to(site)
    assert python(site, code, PYTHONPATH=f"{site}{os.pathsep}{tmp_path / 'again'}") == "1\n"


def test_fifty_plugins_cost_little_and_load_nothing_but_their_tables(tmp_path: Path) -> None:
    """Tables only: no torch, no pydantic, none of the modules where the classes are."""
    for index in range(50):
        info = tmp_path / f"zoo_many{index}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: zoo-many{index}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[zoo.plugins]\nmany{index} = zoo_many{index}.plugin\n")
        package = tmp_path / f"zoo_many{index}"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "plugin.py").write_text(table(lists(f"many_{index}", target=f"zoo_many{index}.step:Step")))
        (package / "step.py").write_text("raise AssertionError('nobody asked for this')")
    code = (
        "import sys, time, zoo; start = time.perf_counter(); zoo.optimizer_spec('many_7');"
        "first = time.perf_counter() - start; zoo.list_optimizers(); zoo.optimizer_spec('lion');"
        "again = time.perf_counter() - start - first;"
        "print(len(zoo.list_optimizers('many*')), 'torch' in sys.modules, 'pydantic' in sys.modules, first < 0.5, again < 0.1)"
    )
    assert python(tmp_path, code) == "50 False False True True\n"


def test_a_thousand_other_distributions_are_only_glanced_at(tmp_path: Path) -> None:
    for index in range(1000):
        info = tmp_path / f"other{index}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_bytes(b"\xff not even text")
    code = (
        "import time, zoo; start = time.perf_counter(); zoo.optimizer_spec('adam');"
        "first = time.perf_counter() - start; start = time.perf_counter(); zoo.optimizer_spec('lion');"
        "print(first < 1.0, time.perf_counter() - start < 0.01)"
    )
    assert python(tmp_path, code) == "True True\n"
