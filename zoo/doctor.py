"""What ``zoo doctor`` finds: every plugin and its state, and everything that is wrong, with a remedy."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from . import registry
from .errors import PluginError, RegistryFileError, UnknownOptimizerError

if TYPE_CHECKING:
    from .registry_file import Source

__all__ = ["PluginReport", "Problem", "Report", "examine"]


@dataclass
class PluginReport:
    """A plugin's state: "ok", "slow", "broken", or "disabled" by the registry file."""

    name: str
    distribution: str
    version: str
    state: str
    optimizers: int
    seconds: float


@dataclass
class Problem:
    """Something wrong: where, why, and what to do."""

    where: str
    cause: str
    remedy: str


@dataclass
class Report:
    """All plugins, and all problems."""

    plugins: list[PluginReport] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        """The report as JSON holds it."""
        return asdict(self)


def examine(source: Source | None = None, *, deep: bool = True) -> Report:
    """Look at every plugin, name and preset.

    Args:
        source: the registry file to go by, and to check; None takes ``ZOO_REGISTRY``, else the shipped default.
        deep: also import every optimizer's class, and check every preset against its optimizer's options.

    Raises:
        RegistryFileError: the registry file can't be used at all.
    """
    report = Report()
    for plugin in registry.plugins(source):
        state = "disabled" if plugin.state == "found" else plugin.state
        report.plugins.append(
            PluginReport(
                plugin.name, plugin.distribution, plugin.version, state, len(plugin.specs), round(plugin.seconds, 3)
            )
        )
        if plugin.cause:
            report.problems.append(Problem(f"{plugin.name} of {plugin.distribution}", plugin.cause, plugin.remedy))
    for name, owners in registry.clashes(source).items():
        remedy = f"ask for one as {owners[0]}:{name}, or put 'prefer: {{{name}: {owners[0]}}}' into a registry file"
        if len(set(owners)) == 1:
            remedy = f"report it to the authors of {owners[0]}"
        report.problems.append(Problem(name, f"is in {', '.join(owners)}", remedy))
    if deep and _has_torch(report):
        _examine_classes(report, source)
        _examine_presets(report, source)
    return report


def _has_torch(report: Report) -> bool:
    """Whether torch can be imported; it reads every distribution's entry points itself, and stops at one it can't read."""
    try:
        import torch  # noqa: F401
    except Exception as error:  # whatever a broken installation raises
        cause = f"can't be imported, so no optimizer can be checked: {type(error).__name__}: {error}"
        report.problems.append(Problem("torch", cause, "reinstall it, or what is broken above"))
        return False
    return True


def _examine_classes(report: Report, source: Source | None) -> None:
    for name in registry.list_optimizers(registry=source):
        if isinstance(name, registry.ListedName) and name.kind != "optimizer":
            continue
        try:
            registry.optimizer_class(name, registry=source)
        except RegistryFileError:
            continue  # said with the presets
        except PluginError as error:
            spec = registry.optimizer_spec(name, registry=source)
            owner = next((p.distribution for p in registry.plugins(source) if spec in p.specs), registry.HERE)
            report.problems.append(Problem(name, str(error), f"reinstall {owner}, or report it to its authors"))


def _examine_presets(report: Report, source: Source | None) -> None:
    from .registry_file import load_settings

    settings = load_settings(source)
    for key, label in settings.labels.items():
        place, preset = settings.places[key], settings.file.presets.get(key)
        kind = "alias" if preset is None else "preset"
        try:
            registry.optimizer_spec(label, registry=source)
            if preset is None:
                continue
            config = registry.optimizer_config(label, registry=source)
            config.model_validate(preset.options)
            for rule in preset.param_groups:
                config.model_validate({**preset.options, **rule.options})
        except (PluginError, RegistryFileError, UnknownOptimizerError, ValueError) as error:
            report.problems.append(Problem(f"{kind} {label} ({place})", _one_line(error), "correct the file"))


def _one_line(error: Exception) -> str:
    """An error without the address of pydantic's pages."""
    listed = getattr(error, "errors", None)
    if callable(listed):
        return "; ".join(f"{'.'.join(map(str, line['loc']))}: {line['msg']}" for line in listed())
    return str(error)
