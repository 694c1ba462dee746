"""The pydantic base of every optimizer's hyperparameters, and the field types they share."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    WrapValidator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError, core_schema

from .granularity import Granularity

__all__ = [
    "Betas",
    "DecayMode",
    "Epsilon",
    "Fraction",
    "LearningRate",
    "NonNegative",
    "OptimizerConfig",
    "Positive",
    "WeightDecay",
    "closest",
    "validate_options",
]


def _is_tensor(value: object) -> bool:
    # A tensor can only exist when torch is loaded, so looking never imports it.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _plain_number(value: Any) -> Any:
    """Clean numeric text and numpy scalars become Python numbers; a bool is no number."""
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        raise PydanticCustomError("number_type", "a number is needed, not a bool")
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            raise PydanticCustomError("number_text", "the text {text} is no number", {"text": repr(value)}) from None
    item = getattr(value, "item", None)
    if callable(item) and not _is_tensor(value) and getattr(value, "ndim", 1) == 0:
        return item()
    return value


def _tensor_or_number(value: Any, handler: Any) -> Any:
    """A one-element tensor passes as it is (its value is range-checked on the CPU); the rest is a number."""
    if not _is_tensor(value):
        return handler(_plain_number(value))
    if value.numel() != 1:
        raise PydanticCustomError(
            "tensor_numel",
            "Tensor hyperparameter must be 1-element, not of shape {shape}",
            {"shape": tuple(value.shape)},
        )
    if value.device.type == "cpu":
        handler(float(value.detach()))
    return value


def _as_tuple(value: Any) -> Any:
    """Any sequence (list, numpy array, list subclass) becomes a tuple; text and sets do not."""
    if isinstance(value, (str, bytes, Mapping, set, frozenset)) or _is_tensor(value):
        return value
    return tuple(value) if isinstance(value, Iterable) else value


def _one_kind(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Floats or tensors, not both."""
    if len({_is_tensor(value) for value in values}) > 1:
        raise PydanticCustomError("mixed_kinds", "betas must be either all floats or all tensors")
    return values


_AS_FLOAT = PlainSerializer(float, return_type=float, when_used="json")
_NUMBER = BeforeValidator(_plain_number)

LearningRate = Annotated[float, Field(ge=0.0, allow_inf_nan=False), WrapValidator(_tensor_or_number), _AS_FLOAT]
"""A float ≥ 0, or a one-element tensor."""
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False), _NUMBER]
"""A finite float ≥ 0."""
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False), _NUMBER]
"""A finite float > 0."""
Real = Annotated[float, Field(allow_inf_nan=False), _NUMBER]
"""Any finite float."""
Fraction = Annotated[float, Field(ge=0.0, lt=1.0, allow_inf_nan=False), _NUMBER]
"""A float in [0, 1): a decay rate of a moving average."""
Unit = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False), _NUMBER]
"""A float in [0, 1]."""
Epsilon = Annotated[float, Field(ge=0.0, allow_inf_nan=False), _NUMBER]
"""A small float ≥ 0 that keeps a division finite."""
WeightDecay = Annotated[float, Field(ge=0.0, allow_inf_nan=False), _NUMBER]
"""A finite float ≥ 0."""
Beta = Annotated[float, Field(ge=0.0, lt=1.0, allow_inf_nan=False), WrapValidator(_tensor_or_number), _AS_FLOAT]
"""A float in [0, 1) or a one-element tensor."""
Betas = Annotated[tuple[Beta, Beta], BeforeValidator(_as_tuple), AfterValidator(_one_kind)]
"""Decay rates (β₁, β₂) of the moving averages of the gradient and of its square, each in [0, 1)."""
Betas3 = Annotated[tuple[Beta, Beta, Beta], BeforeValidator(_as_tuple), AfterValidator(_one_kind)]
"""Three decay rates, each in [0, 1)."""

DecayMode = Literal["l2", "decoupled", "independent"]
"""How weight decay acts: added to the gradient, on the weights scaled by lr, or on the weights unscaled by lr."""
EngineName = Literal["auto", "loop", "blocked", "foreach", "compiled", "fused"]
"""Which engine runs the rule."""
CautiousMode = Literal["mean", "count", "plain", "grams"]
"""How the masked update is rescaled."""


def closest(name: str, options: Iterable[str], n: int = 1) -> list[str]:
    """The up to ``n`` options nearest to ``name`` in spelling, best first."""
    known = {option.lower().replace("-", "_"): option for option in options}
    return [known[match] for match in difflib.get_close_matches(name.lower().replace("-", "_"), known, n=n, cutoff=0.6)]


class OptimizerConfig(BaseModel):
    """Options that every optimizer has; a subclass adds its own fields and overrides defaults.

    Unknown fields are refused with the closest field named, every number has a range, and instances are
    frozen. The pipeline around the rule reads the options of this class, so no rule repeats them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=False, protected_namespaces=())

    raises: ClassVar[Mapping[str, Granularity]] = {
        "centralize": Granularity.TENSOR,
        "agc": Granularity.TENSOR,
        "clip_norm": Granularity.TENSOR,
        "orthograd": Granularity.TENSOR,
        "trust_ratio": Granularity.TENSOR,
        "rms_clip": Granularity.TENSOR,
    }
    """Options that look at more than one element, and the granularity they raise their rule to when set."""

    lr: LearningRate = Field(1e-3, description="Learning rate γ: a float or a one-element tensor.")
    weight_decay: WeightDecay = Field(0.0, description="Weight decay λ.")
    decay_mode: DecayMode = Field(
        "decoupled",
        description="l2: λθ joins the gradient; decoupled: θ ← θ(1 − γλ); independent: θ ← θ(1 − λ·γ/max_lr).",
    )
    max_lr: Positive | None = Field(
        None,
        description="Peak of the lr schedule, for decay_mode independent; default: the group's initial_lr, else lr.",
    )
    cautious_weight_decay: bool = Field(
        False, description="Decay only elements where update and parameter agree in sign."
    )
    maximize: bool = Field(False, description="Maximize the objective instead of minimizing it.")
    centralize: bool = Field(
        False, description="Gradient centralization: subtract the mean over all but the first dimension."
    )
    orthograd: bool = Field(False, description="Remove the gradient's component along the parameter, keep its norm.")
    agc: Positive | None = Field(
        None, description="Adaptive gradient clipping: largest ratio of unit-wise norms |g|/|θ|."
    )
    clip_norm: Positive | None = Field(None, description="Clip each tensor's gradient to this norm.")
    clip_value: Positive | None = Field(None, description="Clip each element of the gradient to ±this value.")
    cautious: CautiousMode | bool = Field(
        False,
        description="Mask the update where it disagrees in sign with the gradient. mean (or true): rescaled by the "
        "mask's mean; count: the authors' numel/(count+1); plain: not rescaled; grams: |update| with the gradient's sign.",
    )
    trust_ratio: bool = Field(False, description="Scale each tensor's update by ‖θ‖/‖update/γ‖ (LARS, LAMB).")
    rms_clip: Positive | None = Field(None, description="Divide the update by max(1, RMS(update/γ)/rms_clip).")
    low_precision: Literal["kahan", "stochastic"] | None = Field(
        None, description="How bf16/fp16 parameters keep small updates: Kahan summation or stochastic rounding."
    )
    state_dtype: Literal["float32", "bfloat16", "float16"] | None = Field(
        None, description="Storage dtype of the state tensors; default: the parameter's."
    )
    skip_nonfinite: bool = Field(False, description="Skip the whole step when any gradient holds NaN or inf.")
    densify: bool = Field(False, description="Turn sparse gradients into dense ones for rules without sparse support.")
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of the optimizer's own random numbers.")
    engine: EngineName = Field("auto", description="Engine that runs the rule.")
    block_size: int = Field(2**18, ge=2**10, description="Elements a block in the blocked engine.")
    foreach_chunk_bytes: int = Field(
        2**28, ge=2**20, description="Largest bundle of parameters, in bytes, of the foreach engine."
    )
    foreach: bool | None = Field(None, description="torch's flag: true asks for the foreach engine, false refuses it.")
    fused: bool | None = Field(None, description="torch's flag: true asks for the fastest exact kernel.")
    capturable: bool = Field(
        False, description="Keep the step count on the device so that a step can be captured in a CUDA graph."
    )
    differentiable: bool = Field(False, description="Let autograd flow through the step (runs the loop engine).")

    if TYPE_CHECKING:

        @property
        def beta1(self) -> float:
            """β₁, the first of ``betas``."""

        @property
        def beta2(self) -> float:
            """β₂, the second of ``betas``."""

    else:

        def __getattr__(self, name: str) -> Any:
            # beta1, beta2, … are the entries of ``betas``, unless a rule has an option of that name.
            betas = self.__dict__.get("betas")
            if betas is not None and name[:4] == "beta" and name[4:].isdigit() and 0 < int(name[4:]) <= len(betas):
                return betas[int(name[4:]) - 1]
            return super().__getattr__(name)

    @model_validator(mode="wrap")
    @classmethod
    def _name_the_closest_field(cls, data: Any, handler: Any) -> Any:
        try:
            return handler(data)
        except ValidationError as error:
            raise _rebuilt(error, error.title, fields=list(cls.model_fields)) from None

    def changed(self) -> dict[str, Any]:
        """The options that differ from their defaults, in field order."""
        return {
            name: getattr(self, name)
            for name, field in type(self).model_fields.items()
            if _differs(getattr(self, name), field.default)
        }


def _differs(value: Any, default: Any) -> bool:
    if _is_tensor(value) or any(_is_tensor(v) for v in (value if isinstance(value, tuple) else ())):
        return True
    return bool(value != default or type(value) is not type(default))


_BUILTIN_KINDS = frozenset(get_args(core_schema.ErrorType))


def _rebuilt(
    error: ValidationError, title: str, *, loc: tuple[int | str, ...] = (), fields: Sequence[str] = ()
) -> ValidationError:
    """The same errors under ``title`` and ``loc``; an unknown field also names the closest of ``fields``."""
    details: list[InitErrorDetails] = []
    for line in error.errors():
        kind: Any = line["type"]
        if kind == "extra_forbidden" and fields:
            key = str(line["loc"][-1])
            hint = "".join(f"; did you mean {match!r}?" for match in closest(key, fields)) or "."
            message = f"unknown option {key!r}{hint} Options: {', '.join(fields)}"
            kind = PydanticCustomError("unknown_option", "{message}", {"message": message})
        elif kind not in _BUILTIN_KINDS:
            kind = PydanticCustomError(kind, "{message}", {"message": line["msg"]})
        entry: InitErrorDetails = {"type": kind, "loc": (*loc, *line["loc"]), "input": line["input"]}
        if isinstance(kind, str) and line.get("ctx"):
            entry["ctx"] = line["ctx"]
        details.append(entry)
    return ValidationError.from_exception_data(title, details)


C = TypeVar("C", bound=OptimizerConfig)


def validate_options(config: type[C], owner: str, options: Mapping[str, Any], *, loc: tuple[int | str, ...] = ()) -> C:
    """``options`` as an instance of ``config``, or a ``ValidationError`` titled ``owner`` with located errors.

    Args:
        config: the optimizer's config model.
        owner: what the error is titled with, such as ``"adamw"``.
        options: field values by name.
        loc: prefix of the errors' locations, such as ``("param_groups", 1)``.
    """
    try:
        return config.model_validate(dict(options))
    except ValidationError as error:
        raise _rebuilt(error, owner, loc=loc) from None
