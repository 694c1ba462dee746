"""registry.yaml: validated, located, extended, found; presets by name; what a file enables."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import nn
from typer.testing import CliRunner

import zoo
from zoo import registry
from zoo.cli import app
from zoo.registry_file import DEFAULT, RegistryFile, load_settings

TEAM = """\
version: 1
extends: default
optimizers:
  disable: ["dadapt_*"]
aliases:
  Our-Adam: adamw
presets:
  small-gpt:
    optimizer: adamw
    lr: 6e-4
    betas: [0.9, 0.95]
    weight_decay: 0.1
    param_groups:
      - match: {ndim: "<2"}          # norms, biases
        weight_decay: 0.0
      - match: {name: "*embed*"}
        lr: 3e-4
"""


class Model(nn.Module):
    """An embedding, a norm and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 4)
        self.norm = nn.LayerNorm(4)
        self.out = nn.Linear(4, 5)


@pytest.fixture
def team(tmp_path: Path) -> Path:
    path = tmp_path / "team.yaml"
    path.write_text(TEAM)
    return path


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def to(text: str, name: str = "file.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return to


def options_of(opt: torch.optim.Optimizer, *keys: str) -> list[tuple[Any, ...]]:
    return [tuple(group[key] for key in keys) for group in opt.param_groups]


# Presets ------------------------------------------------------------------------------------------------------


def test_a_preset_is_created_by_name_with_numbers_and_groups(team: Path) -> None:
    opt = zoo.create_optimizer("Small GPT", Model(), registry=team)
    assert type(opt).__name__ == "AdamW"
    assert options_of(opt, "lr", "weight_decay", "betas") == [
        (0.0006, 0.1, (0.9, 0.95)),
        (0.0006, 0.0, (0.9, 0.95)),
        (0.0003, 0.1, (0.9, 0.95)),
    ]
    assert [group["param_names"] for group in opt.param_groups] == [
        ["out.weight"],
        ["norm.weight", "norm.bias", "out.bias"],
        ["embed.weight"],
    ]


def test_options_given_in_code_win_over_the_preset_but_not_over_its_rules(team: Path) -> None:
    opt = zoo.create_optimizer("small-gpt", Model(), registry=team, lr=1e-2, eps=1e-6)
    assert options_of(opt, "lr", "eps") == [(1e-2, 1e-6), (1e-2, 1e-6), (3e-4, 1e-6)]


def test_a_preset_needs_what_its_rules_look_at(team: Path) -> None:
    with pytest.raises(zoo.ParameterGroupError, match=r"model\.named_parameters"):
        zoo.create_optimizer("small-gpt", Model().parameters(), registry=team)
    named = zoo.create_optimizer("small-gpt", Model().named_parameters(), registry=team)
    assert options_of(named, "lr") == [(0.0006,), (0.0006,), (0.0003,)]
    with pytest.raises(zoo.ParameterGroupError, match=r"rule 1 \(name \*embed\*\) matches no parameter"):
        zoo.create_optimizer("small-gpt", nn.Linear(2, 2), registry=team)


def test_a_wrong_option_of_a_preset_is_located_and_leaves_nothing_behind(write: Callable[..., Path]) -> None:
    path = write("version: 1\npresets:\n  p:\n    optimizer: adamw\n    weigth_decay: 0.1\n")
    with pytest.raises(ValidationError, match="did you mean 'weight_decay'") as caught:
        zoo.create_optimizer("p", Model(), registry=path)
    if sys.version_info >= (3, 11):
        assert caught.value.__notes__ == [f"preset 'p' of {path}:3"]
    group = write("version: 1\npresets:\n  p:\n    optimizer: adamw\n    param_groups: [{match: {ndim: 1}, lr: -1}]\n")
    with pytest.raises(ValidationError, match=r"param_groups\.1\.lr"):
        zoo.create_optimizer("p", Model(), registry=group)


def test_a_mapping_may_hold_rules_and_a_presets_name_and_is_not_changed(team: Path) -> None:
    config: dict[str, Any] = {"name": "adamw", "param_groups": [{"match": {"ndim": 1}, "lr": 1}]}
    before = json.dumps(config)
    assert options_of(zoo.create_optimizer(config, Model()), "lr") == [(1e-3,), (1.0,)]
    assert json.dumps(config) == before
    opt = zoo.create_optimizer({"optimizer": "small-gpt", "lr": 0.5}, Model(), registry=team)
    assert options_of(opt, "lr") == [(0.5,), (0.5,), (3e-4,)]
    opt = zoo.create_optimizer({"optimizer": "small-gpt", "param_groups": []}, Model(), registry=team)
    assert options_of(opt, "lr") == [(6e-4,)]


def test_from_config_takes_a_file_a_mapping_or_a_registry(team: Path, write: Callable[..., Path]) -> None:
    lone = write("optimizer: lion\nlr: 1e-4\nbetas: [0.9, 0.98]\n")
    assert options_of(zoo.from_config(lone, Model()), "lr", "betas") == [(1e-4, (0.9, 0.98))]
    as_json = write(json.dumps({"name": "lion", "lr": 1e-4}), "lion.json")
    assert options_of(zoo.from_config(as_json, Model(), lr=2e-4), "lr") == [(2e-4,)]
    assert options_of(zoo.from_config({"name": "sgd", "lr": "0.5"}, Model()), "lr") == [(0.5,)]
    assert len(zoo.from_config(team, Model()).param_groups) == 3  # it has only one preset of its own
    assert options_of(zoo.from_config(team, Model(), preset="gpt-pretrain"), "lr") == [(6e-4,), (6e-4,)]
    assert options_of(zoo.from_config("default", Model(), preset="lora-finetune"), "lr") == [(2e-4,)]


def test_from_config_says_what_it_lacks(write: Callable[..., Path]) -> None:
    with pytest.raises(zoo.RegistryFileError, match=r"say which of its presets .*gpt-pretrain"):
        zoo.from_config("default", Model())
    with pytest.raises(zoo.RegistryFileError, match="'optimizer' is missing; is 'optimiser' meant"):
        zoo.from_config({"optimiser": "adamw"}, Model())
    with pytest.raises(zoo.RegistryFileError, match="both 'name' and 'optimizer'"):
        zoo.from_config({"name": "adam", "optimizer": "adamw"}, Model())
    with pytest.raises(zoo.RegistryFileError, match="is a single preset"):
        zoo.from_config(write("optimizer: adam"), Model(), preset="other")
    with pytest.raises(zoo.RegistryFileError, match="is empty"):
        zoo.from_config(write(""), Model())


class Node(Mapping[str, Any]):
    """A mapping that is no dict, as config libraries have them."""

    def __init__(self, **values: Any) -> None:
        self.values_ = values

    def __getitem__(self, key: str) -> Any:
        return self.values_[key]

    def __iter__(self) -> Any:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)


def test_nodes_of_config_libraries_are_mappings_too() -> None:
    opt = zoo.create_optimizer(Node(name="adamw", param_groups=[Node(match=Node(ndim=1), lr=0.5)]), Model())
    assert options_of(opt, "lr") == [(1e-3,), (0.5,)]


# The shipped default ------------------------------------------------------------------------------------------


def test_every_shipped_recipe_has_its_source_and_can_be_built() -> None:
    settings = load_settings("default")
    assert len(settings.file.presets) >= 5
    for name, preset in settings.file.presets.items():
        assert preset.source, name
        assert preset.description.endswith("."), name
        opt = zoo.create_optimizer(name, Model())
        for option, value in preset.options.items():
            expected = tuple(value) if isinstance(value, list) else value
            assert opt.param_groups[0][option] == expected, f"{name}.{option}"


def test_the_shipped_file_only_adds_names() -> None:
    """So that listing optimizers need not read it; and none of its names hides an optimizer."""
    settings = load_settings("default")
    assert settings.file.plugins == settings.file.optimizers == RegistryFile(version=1).plugins
    assert settings.file.prefer == {}
    assert not set(settings.labels) & {name.replace("-", "_") for name in zoo.list_optimizers()}


def test_a_shipped_preset_is_found_without_a_file_of_ones_own() -> None:
    assert zoo.optimizer_spec("gpt-pretrain").name == "adamw"
    with pytest.raises(zoo.UnknownOptimizerError) as caught:
        zoo.create_optimizer("gtp-pretrain", Model())
    assert caught.value.closest[0] == "gpt-pretrain"


# What a file says -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("version: 1\noptimisers:\n  disable: [x]", 2, "unknown key 'optimisers'; did you mean 'optimizers'?"),
        ("version: 1\noptimizers:\n  disabel: [x]", 3, "unknown key 'optimizers.disabel'; did you mean 'disable'?"),
        ("version: 2", 1, "version: Input should be 1"),
        ("aliases: {}", 1, "key 'version' is missing"),
        ("vesion: 1", 1, "key 'version' is missing; is 'vesion' meant to be it?"),
        ("- version: 1", None, "is a list"),
        ("just text", None, "is a str"),
        ("", None, "is empty"),
        ("version: 1\npresets:\n  p:\n    lr: 1", 3, "key 'presets.p.optimizer' is missing"),
        (
            "version: 1\npresets:\n  p:\n    optimizer: adam\n    param_groups:\n      - lr: 1",
            6,
            "'presets.p.param_groups.0.match' is missing",
        ),
        (
            "version: 1\npresets:\n  p:\n    optimizer: adam\n    param_groups:\n      - match:\n          nmae: x",
            7,
            "unknown key 'presets.p.param_groups.0.match.nmae'; did you mean 'name'?",
        ),
        (
            "version: 1\npresets:\n  p:\n    optimizer: adam\n    param_groups:\n      - match: {ndim: two}",
            6,
            "a comparison is needed, such as '<2'",
        ),
        ("version: 1\naliases:\n  a: adam\n  A: adamw", 4, "has the name 'A' twice, first on line 3"),
        (
            "version: 1\naliases:\n  p: adam\npresets:\n  P:\n    optimizer: adam",
            5,
            "has the name 'P' twice, first on line 3",
        ),
        ("version: 1\naliases: [adam]", 2, "aliases: Input should be a valid dictionary"),
        ("version: 1\nextends: missing.yaml", 2, "extends 'missing.yaml', but"),
    ],
)
def test_a_wrong_file_is_refused_with_file_line_and_key(
    write: Callable[..., Path], text: str, line: int | None, problem: str
) -> None:
    path = write(text)
    with pytest.raises(zoo.RegistryFileError) as caught:
        zoo.list_optimizers(registry=path)
    assert problem in str(caught.value)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"{path}:")


def test_two_mistakes_are_both_said_with_their_lines(write: Callable[..., Path]) -> None:
    path = write("version: 1\npreset: {}\naliass: {}\n")
    with pytest.raises(zoo.RegistryFileError, match=r"2: unknown key 'preset'.*line 3: unknown key 'aliass'"):
        load_settings(path)


def test_empty_sections_are_none(write: Callable[..., Path]) -> None:
    assert load_settings(write("version: 1\npresets:\naliases:\n")).labels == {}


def test_includes_that_loop_are_refused_quickly(write: Callable[..., Path], tmp_path: Path) -> None:
    first = write("version: 1\nextends: b.yaml", "a.yaml")
    write("version: 1\nextends: a.yaml", "b.yaml")
    itself = write("version: 1\nextends: ./self.yaml", "self.yaml")
    (tmp_path / "link.yaml").symlink_to(itself)
    start = time.perf_counter()
    with pytest.raises(zoo.RegistryFileError, match=r"extends itself: .*a\.yaml → .*b\.yaml → .*a\.yaml"):
        load_settings(first)
    for path in (itself, tmp_path / "link.yaml"):
        with pytest.raises(zoo.RegistryFileError, match="extends itself"):
            load_settings(path)
    for index in range(40):
        write(f"version: 1\nextends: chain{index + 1}.yaml", f"chain{index}.yaml")
    with pytest.raises(zoo.RegistryFileError, match="chain of more than 16 files"):
        load_settings(tmp_path / "chain0.yaml")
    assert time.perf_counter() - start < 2


def test_a_nearer_file_wins_entry_by_entry(write: Callable[..., Path], tmp_path: Path) -> None:
    write("version: 1\nextends: default\naliases: {x: adam, y: adam}\noptimizers: {disable: ['d*']}", "base.yaml")
    (tmp_path / "sub").mkdir()
    top = write(
        "version: 1\nextends: ../base.yaml\naliases: {X: lion}\noptimizers: {enable: ['*a*', lion]}\n"
        "presets: {gpt-pretrain: {optimizer: lion}}",
        "sub/top.yaml",
    )
    settings = load_settings(top)
    assert settings.file.aliases == {"x": "lion", "y": "adam"}
    assert settings.file.presets["gpt_pretrain"].optimizer == "lion"
    assert "lora_finetune" in settings.file.presets
    assert settings.file.optimizers.enable == ("*a*", "lion")
    assert settings.file.optimizers.disable == ("d*",)
    assert settings.places["x"] == f"{top}:3"
    assert settings.places["y"] == f"{tmp_path / 'base.yaml'}:3"


def test_a_file_that_changed_is_read_again(team: Path) -> None:
    assert "small-gpt" in zoo.list_optimizers(registry=team)
    team.write_text(TEAM.replace("small-gpt", "another"))
    assert "another" in zoo.list_optimizers(registry=team)


# What a file makes available ------------------------------------------------------------------------------------


def test_listing_a_registry_marks_presets_and_aliases(team: Path) -> None:
    listed = {name: (name.kind, name.optimizer) for name in zoo.list_optimizers(registry=team)}  # type: ignore[attr-defined]
    assert listed["small-gpt"] == ("preset", "adamw")
    assert listed["gpt-pretrain"] == ("preset", "adamw")
    assert listed["Our-Adam"] == ("alias", "adamw")
    assert listed["adamw"] == ("optimizer", "adamw")
    assert not any(name.startswith("dadapt") for name in listed)
    assert "small-gpt" not in zoo.list_optimizers()
    assert list(listed) == sorted(listed)
    assert zoo.list_optimizers("our*", registry=team) == ["Our-Adam"]
    assert "small-gpt" in zoo.list_optimizers(family="adaptive", registry=team)


def test_every_listed_name_can_be_created(team: Path) -> None:
    for name in zoo.list_optimizers(registry=team):
        assert isinstance(zoo.create_optimizer(name, Model(), registry=team), torch.optim.Optimizer), name


def test_a_disabled_optimizer_is_not_to_be_had_and_the_file_is_named(team: Path) -> None:
    with pytest.raises(zoo.UnknownOptimizerError, match=rf"installed, but {team} does not enable it"):
        zoo.create_optimizer("dadapt_adam", Model(), registry=team)
    assert zoo.optimizer_spec("dadapt_adam").name == "dadapt_adam"


def test_the_environment_names_a_registry_and_an_argument_beats_it(team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZOO_REGISTRY", str(team))
    assert zoo.optimizer_spec("our adam").name == "adamw"
    assert "dadapt_adam" not in zoo.list_optimizers()
    assert "dadapt_adam" in zoo.list_optimizers(registry="default")
    monkeypatch.setenv("ZOO_REGISTRY", str(team.with_name("missing.yaml")))
    with pytest.raises(zoo.RegistryFileError, match=r"missing\.yaml: can't be read"):
        zoo.list_optimizers()


def test_a_plugin_that_a_file_disables_is_not_imported(write: Callable[..., Path]) -> None:
    path = write("version: 1\nplugins: {enable: ['optimizer-zoo:adaptive']}\n")
    code = (
        "import sys, zoo; print(zoo.list_optimizers() == zoo.list_optimizers(family='adaptive'),"
        " [m for m in sys.modules if m.startswith('zoo_plugins.') and m.endswith('.plugin')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"ZOO_REGISTRY": str(path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "True ['zoo_plugins.adaptive.plugin']\n"


def test_a_files_alias_comes_before_a_plugins_but_not_before_a_name(write: Callable[..., Path]) -> None:
    assert zoo.optimizer_spec("adamw_hf").name == "adamw"
    path = write("version: 1\naliases: {adamw_hf: lion}")
    assert zoo.optimizer_spec("adamw_hf", registry=path).name == "lion"
    taken = write("version: 1\npresets: {adam: {optimizer: lion}}", "taken.yaml")
    with pytest.raises(zoo.RegistryFileError, match="'adam' is already an optimizer of optimizer-zoo"):
        zoo.create_optimizer("adam", Model(), registry=taken)
    assert zoo.optimizer_spec("lion", registry=taken).name == "lion"


def test_an_alias_or_preset_of_nothing_names_its_place(write: Callable[..., Path]) -> None:
    path = write("version: 1\naliases:\n  a: adamz\n")
    with pytest.raises(zoo.UnknownOptimizerError, match=rf"'adamz' \(asked for by alias 'a' of {path}:3\)"):
        zoo.optimizer_spec("a", registry=path)
    assert "a" not in zoo.list_optimizers(registry=path)


def test_prefer_settles_a_clash(write: Callable[..., Path]) -> None:
    twin = registry._Entry(
        zoo.OptimizerSpec("adam", "zoo_plugins.sign.lion:Lion"),
        registry.Plugin("twin", "Other-Zoo", "1", "nowhere", state="ok"),
    )
    known = registry._registry()
    known.load(lambda plugin: True)
    known.add(twin)
    try:
        with pytest.raises(zoo.AmbiguousOptimizerError, match="Other-Zoo:adam, optimizer-zoo:adam"):
            zoo.optimizer_spec("adam")
        assert {"Other-Zoo:adam", "optimizer-zoo:adam"} <= set(zoo.list_optimizers())
        assert "adam" not in zoo.list_optimizers()
        assert registry.clashes() == {"adam": ["Other-Zoo", "optimizer-zoo"]}
        path = write("version: 1\nprefer: {adam: other-zoo}")
        assert zoo.optimizer_spec("adam", registry=path) is twin.spec
        assert registry.clashes(path) == {}
        assert "optimizer-zoo:adam" in zoo.list_optimizers(registry=path)
        assert zoo.optimizer_spec("optimizer_zoo:adam", registry=path).target == "zoo_plugins.adaptive.adam:Adam"
    finally:
        known.remove(twin)


# Command line ---------------------------------------------------------------------------------------------------


def invoke(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output


def test_the_command_line_lists_and_shows_presets(team: Path) -> None:
    records = {record["name"]: record for record in json.loads(invoke("list", "--json", "--registry", str(team)))}
    assert records["small-gpt"]["kind"] == "preset"
    assert records["small-gpt"]["optimizer"] == "adamw"
    assert "preset of adamw" in invoke("list", "--registry", str(team))
    text = invoke("show", "small-gpt", "--registry", str(team))
    assert text.startswith("small-gpt (preset of adamw)")
    assert "0.0006" in text
    assert "arXiv:2005.14165" in invoke("show", "gpt-pretrain")


def test_doctor_checks_the_file_it_is_given(write: Callable[..., Path]) -> None:
    path = write(
        "version: 1\naliases:\n  a: adamz\npresets:\n  typo:\n    optimizer: adamw\n    weigth_decay: 1\n"
        "  group:\n    optimizer: adamw\n    param_groups: [{match: {ndim: 1}, lr: -1}]\n  adam:\n    optimizer: lion\n"
        "  fine:\n    optimizer: lion\n"
    )
    problems = {
        p["where"]: p["cause"]
        for p in json.loads(invoke("doctor", "--json", "--registry", str(path), code=1))["problems"]
    }
    assert set(problems) == {
        f"alias a ({path}:3)",
        f"preset typo ({path}:5)",
        f"preset group ({path}:8)",
        f"preset adam ({path}:11)",
    }
    assert "did you mean 'weight_decay'" in problems[f"preset typo ({path}:5)"]
    assert "greater than or equal to 0" in problems[f"preset group ({path}:8)"]


def test_a_wrong_file_is_one_line_on_stderr(write: Callable[..., Path]) -> None:
    path = write("version: 1\npreset: {}")
    done = subprocess.run(
        [sys.executable, "-m", "zoo.cli", "list", "--registry", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"zoo: {path}:2: unknown key 'preset'; did you mean 'presets'?")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_the_schema_of_a_registry_describes_the_shipped_one() -> None:
    schema = json.loads(invoke("schema", "registry"))
    assert set(schema["properties"]) == set(RegistryFile.model_fields)
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Preset"]["additionalProperties"] is True
    assert {"type": "string"} in schema["$defs"]["Match"]["properties"]["name"]["anyOf"]
    assert all("description" in field for field in schema["properties"].values())
    assert DEFAULT.exists()
