"""The base optimizer: a ``torch.optim.Optimizer`` that runs a rule written once.

A rule is a subclass with a config and up to three short methods::

    class Adam(BaseOptimizer[AdamConfig], rule=Granularity.ELEMENTWISE):
        def init_state(self, p, cfg): ...     # which state tensors a parameter needs
        def scalars(self, cfg, step): ...     # what depends on options and the step count only
        def update(self, g, p, s, c): ...     # the tensor to subtract from the parameter

Everything else lives here or in the pipeline around the rule: validation, groups, closures, the step count,
state creation, checkpoints, copies, the choice of an engine.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar, cast, get_args

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from . import checkpoint, engines, helpers
from .capabilities import Capabilities, capabilities_of
from .config import OptimizerConfig, validate_options
from .distributed import gathered, is_distributed, keep_own_part_, local
from .engines.base import Batch, Item, add_totals
from .engines.fused import FusedKernel
from .granularity import Granularity
from .noise import Noise, stream_seed
from .pipeline import Pipeline, Scalars, Slots, State
from .plan import Plan

__all__ = ["BaseOptimizer"]

C = TypeVar("C", bound=OptimizerConfig)

GROUP_TAGS = frozenset(
    {
        "params",
        "param_names",
        "name",
        "optimizer",
        "initial_lr",
        "lr_scale",
        "lr_mult",
        "layer_id",
        "layer_name",
        "tags",
    }
)
"""Keys of a parameter group that are no options and pass unchecked; ``tags`` holds whatever the caller likes."""
_CORE_OPTIONS = frozenset(OptimizerConfig.model_fields) - {
    "lr", "weight_decay", "decay_mode", "maximize", "agc", "clip_norm", "clip_value", "rms_clip", "seed"
}  # fmt: skip
"""Options that concern the core alone: no rule and no kernel sees them, so none is compiled anew for one."""
_STATE_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class BaseOptimizer(torch.optim.Optimizer, Generic[C]):
    """Base of every optimizer in the zoo.

    Class attributes that a rule may set:

    * ``rule`` (class keyword): the :class:`Granularity` of the rule.
    * ``update`` (class keyword): of a global rule, what ``reduce`` and ``update`` themselves look at.
    * ``counts_steps``: whether the state holds torch's ``step``; false for rules whose numbers do not depend on it.
    * ``sums_per_group``: whether a global rule adds up each group for itself (memory from ``init_group``).
    * ``supports_sparse``: whether ``update`` takes sparse gradients.
    * ``fused_kernel``: torch's own kernel for exactly this rule, if there is one.
    * ``supports_capturable``: whether a step with ``capturable=True`` reads no tensor's value.
    * ``needs_closure``, ``needs_create_graph``: what the training loop must give.
    * ``supports_complex``: whether complex parameters are seen as their real view; default: elementwise rules.

    Args:
        params: parameters, parameter groups or ``(name, parameter)`` pairs, as in torch.
        lr: learning rate, given by position as in torch.
        options: the fields of ``Config``, by keyword.

    Raises:
        pydantic.ValidationError: (a ``ValueError``) for an unknown or out-of-range option, with its location.
        TypeError, ValueError: for parameters that torch refuses.
    """

    Config: ClassVar[type[OptimizerConfig]] = OptimizerConfig
    granularity: ClassVar[Granularity] = Granularity.ELEMENTWISE
    update_granularity: ClassVar[Granularity] = Granularity.ELEMENTWISE
    counts_steps: ClassVar[bool] = True
    sums_per_group: ClassVar[bool] = False
    supports_sparse: ClassVar[bool] = False
    supports_complex: ClassVar[bool] = True
    supports_capturable: ClassVar[bool] = True
    needs_closure: ClassVar[bool] = False
    needs_create_graph: ClassVar[bool] = False
    registered_name: ClassVar[str]
    fused_kernel: ClassVar[FusedKernel | None] = None
    helpers = helpers

    def __init_subclass__(cls, *, rule: Granularity | None = None, update: Granularity | None = None) -> None:
        super().__init_subclass__()
        for base in vars(cls).get("__orig_bases__", ()):
            for argument in get_args(base):
                if isinstance(argument, type) and issubclass(argument, OptimizerConfig):
                    cls.Config = argument
        if rule is not None:
            cls.granularity = rule
            cls.update_granularity = update if update is not None else rule
            if "supports_complex" not in vars(cls):
                cls.supports_complex = cls.update_granularity is Granularity.ELEMENTWISE
        fields = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.annotation)
            for name, field in cls.Config.model_fields.items()
        ]
        fields[0] = fields[0].replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
        params = inspect.Parameter("params", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=ParamsT)
        cls.__signature__ = inspect.Signature([params, *fields])  # type: ignore[attr-defined]

    # The rule -------------------------------------------------------------------------------------------------

    def init_state(self, p: Tensor, cfg: C) -> dict[str, Tensor]:
        """The state tensors of parameter ``p`` before its first step, named as torch names them.

        Must not depend on the step, the gradient or anything but ``p`` and ``cfg``; may be called on a
        ``meta`` tensor to learn names, shapes and dtypes.
        """
        return {}

    def scalars(self, cfg: C, step: Any) -> Scalars:
        """Numbers that depend on the options and the step count (1 at the first step): once a step, not once a tensor."""
        return Scalars()

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor | helpers.Scaled:
        """What to subtract from ``p``, lr included; changes or rebinds ``s``, leaves ``g`` and ``p`` alone.

        ``helpers.scaled(numerator, scale, over=denominator)`` saves the eager engines two passes over a tensor.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no update")

    def reduce(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Mapping[str, Tensor]:
        """Sums over this tensor that a global rule needs from all parameters before it updates any."""
        raise NotImplementedError(f"{type(self).__name__} declares a global rule but defines no reduce")

    def combine(self, totals: Mapping[str, Tensor], shared: dict[str, Tensor], c: Scalars) -> Mapping[str, Any]:
        """Scalars for ``update`` from the sums over all parameters; rebinds or changes ``shared`` (see ``init_shared``)."""
        return totals

    def init_shared(self, cfg: C) -> dict[str, Any]:
        """Numbers or 0-dim tensors that belong to all parameters together; every group holds them under these names."""
        return {}

    def init_group(self, cfg: C) -> dict[str, Any]:
        """Numbers or 0-dim tensors that belong to one parameter group, kept in it under these names."""
        return {}

    def advance(self, cfg: C, group: dict[str, Any], step: Any) -> Mapping[str, Any]:
        """Once a step and group: change the numbers of ``init_group`` in ``group``, return scalars made of them.

        Args:
            cfg: the group's options.
            group: the parameter group.
            step: the largest step count among the group's parameters that take part; None where none is kept.
        """
        return {}

    def adjust(self, c: Scalars) -> None:
        """Called for each batch of a global rule once ``combine`` has spoken: may derive further scalars, such as ``decay``."""

    def prepare(self, work: Sequence[tuple[dict[str, Any], list[Tensor]]]) -> None:
        """Called once before the parameters of a step are updated, with (group, parameters that take part)."""

    def has_step(self, cfg: C) -> bool:
        """Whether the state holds ``step`` under these options; default: what ``counts_steps`` says."""
        return self.counts_steps

    def missing_state(self, name: str, fresh: Tensor, given: Mapping[str, Tensor]) -> Tensor:
        """The state tensor ``name`` when a checkpoint lacks it but has the tensors ``given``; default: fresh."""
        return fresh

    def decay_mode(self, cfg: C) -> str:
        """How weight decay acts; a rule overrides this where an option of its own decides.

        "rule" says that ``update`` itself does it, at a place of its own that is neither the gradient nor the weights.
        """
        return cfg.decay_mode

    # Construction ---------------------------------------------------------------------------------------------

    def __init__(self, params: ParamsT, *lr: Any, **options: Any) -> None:
        if len(lr) > 1:
            raise TypeError(f"{self._name()}: only params and lr may be given by position, got {1 + len(lr)} arguments")
        if lr and "lr" in options:
            raise TypeError(f"{self._name()}: lr given twice")
        if lr:
            options["lr"] = lr[0]
        config = validate_options(self.Config, self._name(), options)
        defaults = {name: getattr(config, name) for name in self.Config.model_fields}
        self._check_flags(defaults)
        self._engines = engines.EngineSet()
        super().__init__(cast(Any, _list_of_groups(params)), defaults)

    @classmethod
    def _name(cls) -> str:
        return str(cls.__dict__.get("registered_name", cls.__name__.lower()))

    @classmethod
    def moves_group_numbers(cls) -> bool:
        """Whether a step moves numbers of the parameter group on (the rule has an ``advance`` of its own)."""
        return cls.advance is not BaseOptimizer.advance

    @property
    def capabilities(self) -> Capabilities:
        """What this optimizer can do: engines, dtypes, sparse gradients, sharding."""
        return capabilities_of(type(self))

    def effective_lr(self) -> list[float]:
        """The learning rate in force, a number a parameter group: what a logger should record.

        Rules that tune or schedule it themselves say what they multiply their direction with; others what the
        group holds. Reading a tensor waits for its device: not for use inside a training step.
        """
        return [float(self.learning_rate(group)) for group in self.param_groups]

    def learning_rate(self, group: Mapping[str, Any]) -> Any:
        """The learning rate in force for a group; a rule overrides this where it is not the group's ``lr``."""
        return group["lr"]

    @property
    def config(self) -> C:
        """The options given at construction, as a validated config (groups may override them)."""
        return cast(C, self.Config.model_validate({k: self.defaults[k] for k in self.Config.model_fields}))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a parameter group; its options are validated by the same config as the constructor's.

        The caller's dictionary is not changed. A group that is refused leaves the optimizer as it was.

        Raises:
            TypeError: the group is no dict, or its parameters are no tensors.
            ValueError: an unknown or out-of-range option (pydantic's error), a parameter given twice.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = dict(param_group)
        index = len(self.param_groups)
        memory = self._memory_names(self._default_options())
        given = {k: v for k, v in group.items() if k not in GROUP_TAGS and k not in memory}
        config = validate_options(
            self.Config, self._name(), {**self._default_options(), **given}, loc=("param_groups", index)
        )
        group.update({name: _own(getattr(config, name)) for name in given})
        group.setdefault("optimizer", self._name())
        for name, default in self._default_options().items():
            group.setdefault(name, _own(default))
        self._check_flags(group)
        self._check_params(group)
        super().add_param_group(group)
        self._tie_memory()

    def _default_options(self) -> dict[str, Any]:
        return {name: self.defaults[name] for name in self.Config.model_fields}

    def _check_flags(self, options: Mapping[str, Any]) -> None:
        """Refuse combinations of flags that exclude one another, with torch's exception types."""
        fused, foreach, engine = options["fused"], options["foreach"], options["engine"]
        if fused and foreach:
            raise RuntimeError(f"{self._name()}: `fused` and `foreach` cannot be `True` together; give one of them")
        if options["differentiable"]:
            if fused or engine == "fused":
                raise RuntimeError(f"{self._name()}: `fused` does not support `differentiable`; drop one of them")
            if engine not in ("auto", "loop"):
                raise ValueError(f"{self._name()}: engine {engine!r} is not differentiable; use 'loop' or 'auto'")
        if options["capturable"] and options["low_precision"] == "stochastic":
            raise ValueError(
                f"{self._name()}: stochastic rounding draws from the host and can't be captured; use 'kahan'"
            )
        if foreach and not options["capturable"]:
            given = {"lr": options["lr"], **{f"betas[{i}]": b for i, b in enumerate(options.get("betas") or ())}}
            for option, value in given.items():
                if isinstance(value, Tensor):
                    raise ValueError(
                        f"{self._name()}: {option} as a Tensor is not supported for capturable=False and foreach=True"
                    )

    def _check_params(self, group: dict[str, Any]) -> None:
        params = group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif not isinstance(params, (set, frozenset)):
            params = list(params)
            group["params"] = params
        seen: set[int] = set()
        for index, entry in enumerate(params):
            name, p = entry if isinstance(entry, tuple) and len(entry) == 2 else (f"#{index}", entry)
            if not isinstance(p, Tensor):
                continue  # torch says what is wrong
            if id(p) in seen:
                raise ValueError(f"{self._name()}: parameter {name} stands twice in one parameter group")
            seen.add(id(p))
            if not (p.is_floating_point() or p.is_complex()):
                raise TypeError(
                    f"{self._name()}: parameter {name} is of dtype {p.dtype}; only floating or complex train"
                )
            if p.is_complex() and not self.supports_complex:
                raise ValueError(
                    f"{self._name()}: parameter {name} is complex, and this rule looks at whole tensors; "
                    "give it torch.view_as_real(p), or use an elementwise optimizer such as adam"
                )

    # State ----------------------------------------------------------------------------------------------------

    def materialize_state(self) -> None:
        """Create the state of every parameter that may train and has none yet, without taking a step."""
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.requires_grad:
                        self._ensure_state(p, group)

    @classmethod
    def state_summary(
        cls, shape: Sequence[int], config: OptimizerConfig | None = None, dtype: torch.dtype = torch.float32
    ) -> dict[str, tuple[tuple[int, ...], torch.dtype, int]]:
        """Name → (shape, dtype, bytes) of the state tensors of one parameter of this shape, without allocating any."""
        rule = cls._rule()
        cfg = config or cls.Config()
        p = torch.empty(tuple(shape), dtype=dtype, device="meta")
        state = rule._fresh_state(p, vars(cfg))
        return {k: (tuple(v.shape), v.dtype, v.numel() * v.element_size()) for k, v in state.items()}

    @classmethod
    def _rule(cls) -> BaseOptimizer[C]:
        """An instance without parameters: what engines call, so that no rule can lean on hidden attributes."""
        rule = cls.__dict__.get("_blank_rule")
        if rule is None:
            rule = object.__new__(cls)
            cls._blank_rule = rule  # type: ignore[attr-defined]
        return cast("BaseOptimizer[C]", rule)

    def _hyper(self, group: Mapping[str, Any]) -> C:
        """The group's present options as a config instance; not validated again, schedulers write them."""
        hyper = self.Config.__new__(self.Config)
        object.__setattr__(hyper, "__dict__", {name: group[name] for name in self.Config.model_fields})
        return cast(C, hyper)

    def _fresh_state(self, p: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        hyper = self._hyper(group)
        state: dict[str, Tensor] = {}
        if self._counts(hyper):
            on_device = group["capturable"] or group["fused"]
            state["step"] = torch.zeros((), dtype=torch.float32, device=p.device if on_device else "cpu")
        dtype = _STATE_DTYPES.get(group["state_dtype"] or "")
        for name, tensor in self.init_state(p.detach(), hyper).items():
            cast_it = dtype is not None and tensor.is_floating_point() and tensor.shape == p.shape
            state[name] = tensor.to(dtype) if cast_it else tensor
        if group["low_precision"] == "kahan":
            state["kahan_compensation"] = torch.zeros_like(p, memory_format=torch.preserve_format)
        return state

    def _counts(self, cfg: C) -> bool:
        return self.has_step(cfg) or cfg.low_precision == "stochastic"

    def _ensure_state(self, p: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        state = cast("dict[str, Tensor]", self.state[p])
        if not state:
            state.update(self._fresh_state(p, group))
        return state

    def _complete_state(self, p: Tensor, group: Mapping[str, Any]) -> None:
        """Add the state tensors that options switched on since the state was made."""
        state = self.state[p]
        names = self._fresh_state(torch.empty_like(p, device="meta"), group)
        if any(name not in state for name in names):
            for name, tensor in self._fresh_state(p, group).items():
                state.setdefault(name, tensor)

    def _memory_names(self, options: Mapping[str, Any]) -> frozenset[str]:
        """Names under which groups hold numbers that are no options."""
        hyper, rule = self._hyper(options), self._rule()
        return frozenset((*rule.init_group(hyper), *rule.init_shared(hyper)))

    def _tie_memory(self) -> None:
        """Give every group its own numbers, and the one copy of those that belong to all parameters together."""
        rule, first = self._rule(), self.param_groups[0]
        for name, value in rule.init_shared(self._hyper(first)).items():
            first.setdefault(name, value)
            for group in self.param_groups[1:]:
                group[name] = first[name]
        for group in self.param_groups:
            for name, value in rule.init_group(self._hyper(group)).items():
                group.setdefault(name, value)

    # The step -------------------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step for every parameter that has a gradient.

        Args:
            closure: evaluates the model again and returns the loss; run once, first, with gradients enabled.

        Returns:
            What the closure returned; None without one.

        Raises:
            RuntimeError: a sparse gradient for a rule without sparse support. Nothing has changed then.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        differentiable = any(group["differentiable"] for group in self.param_groups)
        with torch.set_grad_enabled(differentiable and torch.is_grad_enabled()):
            self._take_step()
        return loss

    def step_parameter(self, p: Tensor) -> None:
        """Take the step of one parameter alone (see :func:`zoo.release_gradients`); nothing without a gradient."""
        for index, group in enumerate(self.param_groups):
            if any(other is p for other in group["params"]):
                params = self._trainable({**group, "params": [p]})
                with torch.no_grad():
                    self._run([((index, id(p)), group, params)] if params else [])
                return
        raise ValueError(f"{self._name()}: this tensor is no parameter of the optimizer")

    def _take_step(self) -> None:
        work = [(group, self._trainable(group)) for group in self.param_groups]
        if not any(params for _, params in work):
            return
        if not self.state and self._is_state_request(work):
            self.materialize_state()
            return
        if self._skips(work):
            return
        self._run([(index, group, params) for index, (group, params) in enumerate(work) if params])

    def _run(self, work: Sequence[tuple[Any, dict[str, Any], list[Tensor]]]) -> None:
        """Take the step of these parameters: (key of the plan, group, parameters with a gradient)."""
        self.prepare([(group, params) for _, group, params in work])
        plans = [self._plan(key, group, params) for key, group, params in work]
        for plan in plans:
            plan.count()
        try:
            for (_, group, params), plan in zip(work, plans, strict=True):
                self._refresh(group, params, plan)
            batches = [batch for plan in plans for batch in plan.batches]
            if self.granularity is Granularity.GLOBAL and self.sums_per_group:
                for (_, group, _), plan in zip(work, plans, strict=True):
                    self._reduce(plan.batches, [group], self._rule().init_group(self._hyper(group)))
            elif self.granularity is Granularity.GLOBAL:
                shared = self._rule().init_shared(self._hyper(self.param_groups[0]))
                self._reduce(batches, self.param_groups, shared)
            for batch in batches:
                batch.engine.step(batch)
                for item in batch.items:
                    if item.finish is not None:
                        item.finish()
        except BaseException:
            for plan in plans:
                plan.uncount()
            raise
        for plan in plans:
            plan.seal()

    def _trainable(self, group: Mapping[str, Any]) -> list[Tensor]:
        """The group's parameters that take part in this step: with a gradient, not frozen."""
        params = []
        for p in group["params"]:
            g = p.grad
            if g is None or not p.requires_grad:
                continue
            if g.layout is not torch.strided and not group["densify"]:
                self._check_sparse(p, group)
            params.append(p)
        return params

    def _check_sparse(self, p: Tensor, group: Mapping[str, Any]) -> None:
        """Refuse a sparse gradient that the rule, or a slot before it, can't take."""
        label = self._label(p)
        if not self.supports_sparse:
            raise RuntimeError(
                f"{self._name()} does not support sparse gradients (parameter {label}); use densify=True, "
                "an optimizer with sparse support such as sparse_adam or sgd, or nn.Embedding(sparse=False)"
            )
        slots = self._pipeline(self._hyper(group)).slots
        dense_only = [name for name, value in vars(slots).items() if value and name not in ("maximize", "decay")]
        if dense_only:
            raise RuntimeError(
                f"{self._name()}: {', '.join(dense_only)} is not compatible with sparse gradients (parameter {label}); "
                "switch it off or use densify=True"
            )

    def _label(self, p: Tensor) -> str:
        """The parameter's name where names are known, else its position."""
        for group in self.param_groups:
            for index, other in enumerate(group["params"]):
                if other is p and group.get("param_names"):
                    return repr(group["param_names"][index])
        return f"#{self._position(p)}"

    def _position(self, p: Tensor) -> int:
        """The parameter's place among all parameters."""
        return next(i for i, other in enumerate(q for g in self.param_groups for q in g["params"]) if other is p)

    @staticmethod
    def _is_state_request(work: Sequence[tuple[Mapping[str, Any], Sequence[Tensor]]]) -> bool:
        """Whether this is not a step but torch's distributed checkpoint asking for state: lr 0, all gradients 0."""
        if any(bool(group["lr"] != 0) for group, _ in work):
            return False
        return not any(bool(torch.count_nonzero(local(cast(Tensor, p.grad)))) for _, params in work for p in params)

    def _skips(self, work: Sequence[tuple[Mapping[str, Any], Sequence[Tensor]]]) -> bool:
        """Whether a non-finite gradient makes this step be skipped."""
        grads = [cast(Tensor, p.grad) for group, params in work if group["skip_nonfinite"] for p in params]
        if not grads:
            return False
        finite = helpers.all_finite([local(g) for g in grads])
        if bool(finite):
            return False
        self._skipped_steps = self.skipped_steps + 1
        return True

    @property
    def skipped_steps(self) -> int:
        """How many steps were skipped because a gradient was not finite (``skip_nonfinite=True``)."""
        return int(getattr(self, "_skipped_steps", 0))

    def _plan(self, key: Any, group: dict[str, Any], params: list[Tensor]) -> Plan:
        """The plan of this group: the last step's where it still holds, else a new one."""
        hyper = self._hyper(group)
        structure = tuple(
            v != 0 if isinstance(v, float) else isinstance(v, (Tensor, tuple)) or v for v in vars(hyper).values()
        )
        plan = self._engines.plans.get(key)
        if plan is not None and plan.holds(params, structure):
            return plan
        states = []
        for p in params:
            state = self._ensure_state(p, group)
            if plan is not None and plan.structure != structure:
                self._complete_state(p, group)
            states.append(state)
        counts = self._counts(hyper)
        plan = self._engines.plans[key] = Plan(params, states, structure, counts)
        pipeline = self._pipeline(hyper)
        members: dict[Any, list[int]] = {}
        for position, batch_key in enumerate(plan.keys()):
            members.setdefault(batch_key, []).append(position)
        plan.members = list(members.values())
        plan.first = self._position(params[0])
        plan.batches = [
            Batch(
                pipeline=pipeline,
                scalars=Scalars(),
                items=[
                    self._item(params[i], states[i], pipeline, gather=False, densify=group["densify"])
                    for i in positions
                ],
                engine=self._engines.get("loop"),
                block_size=group["block_size"],
                chunk_bytes=group["foreach_chunk_bytes"],
                differentiable=group["differentiable"],
            )
            for positions in plan.members
        ]
        return plan

    def _refresh(self, group: dict[str, Any], params: Sequence[Tensor], plan: Plan) -> None:
        """Bring this step's gradients and numbers into the plan's batches."""
        rule = self._rule()
        steps: Any = None
        if plan.counters is not None:
            steps = plan.counters if plan.counters.device.type != "cpu" else plan.counters.int().tolist()
        latest = None if steps is None else max(steps) if isinstance(steps, list) else steps.max()
        advanced = rule.advance(self._hyper(group), group, latest)
        memory = {name: group[name] for name in self._memory_names(group)}
        for positions, batch in zip(plan.members, plan.batches, strict=True):
            step = None if steps is None else steps[positions[0]]
            batch.scalars = self._scalars(rule, self._hyper(group), group, step)
            vars(batch.scalars).update(memory)
            vars(batch.scalars).update(advanced)
            for item, i in zip(batch.items, positions, strict=True):
                if item.plain:
                    item.grad = self._gradient(params[i], group["densify"])
                else:
                    fresh = self._item(params[i], plan.states[i], batch.pipeline, gather=True, densify=group["densify"])
                    item.param, item.grad, item.state, item.finish = fresh.param, fresh.grad, fresh.state, fresh.finish
                if batch.pipeline.slots.rounding == "stochastic":
                    item.noise = Noise(stream_seed(group["seed"], int(step or 0), plan.first + i), item.param.device)
            sparse = self.supports_sparse and any(item.grad.layout is not torch.strided for item in batch.items)
            batch.engine = self._engines.get("loop") if sparse else self._engines.choose(group, batch)

    def _pipeline(self, hyper: C) -> Pipeline:
        granularity = self.update_granularity
        for option, raised in hyper.raises.items():
            if getattr(hyper, option):
                granularity = max(granularity, raised)
        if hyper.cautious in (True, "mean", "count"):
            granularity = max(granularity, Granularity.TENSOR)
        return Pipeline(self._rule(), Slots.of(hyper, self.decay_mode(hyper)), granularity)

    def _gradient(self, p: Tensor, densify: bool) -> Tensor:
        g = cast(Tensor, p.grad)
        return g.to_dense() if g.layout is not torch.strided and (densify or not self.supports_sparse) else g

    def _item(self, p: Tensor, state: dict[str, Tensor], pipeline: Pipeline, *, gather: bool, densify: bool) -> Item:
        """What an engine needs to know of ``p``: the tensors themselves where they are plain, else views or wholes."""
        g = self._gradient(p, densify)
        tensors = {name: tensor for name, tensor in state.items() if name != "step"}
        if g is p.grad and not p.is_complex() and not is_distributed(p) and not is_distributed(g):
            return Item(param=p, grad=g, state=tensors, key=p, home=state)
        finish = None
        wholes_needed = Granularity.GLOBAL is self.granularity or pipeline.granularity is not Granularity.ELEMENTWISE
        if is_distributed(p) and gather and wholes_needed:
            param, grad = gathered(p.detach()), gathered(g)
            wholes = {name: gathered(tensor) for name, tensor in tensors.items()}
            finish = partial(_keep_own_parts, p.detach(), param, tensors, wholes)
            tensors = wholes
        else:
            param, grad = local(p.detach()), local(g, like=p)
            tensors = {name: local(tensor) for name, tensor in tensors.items()}
        if param.is_complex() and self.supports_complex:
            param, grad = torch.view_as_real(param), torch.view_as_real(grad)
            tensors = {k: torch.view_as_real(v) if v.is_complex() else v for k, v in tensors.items()}
        return Item(param=param, grad=grad, state=tensors, key=p, home=state, plain=False, finish=finish)

    def _scalars(self, rule: BaseOptimizer[C], hyper: C, group: Mapping[str, Any], step: Any) -> Scalars:
        values: dict[str, Any] = {name: _number(value) for name, value in vars(hyper).items()}
        object.__setattr__(hyper, "__dict__", values)
        c = Scalars(**{name: value for name, value in values.items() if name not in _CORE_OPTIONS})
        for index, beta in enumerate(values.get("betas") or (), start=1):
            if f"beta{index}" not in values:
                setattr(c, f"beta{index}", beta)
        c.decay = self._decay(values, group)
        vars(c).update(vars(rule.scalars(hyper, step)))
        return c

    @staticmethod
    def _decay(values: Mapping[str, Any], group: Mapping[str, Any]) -> Any:
        """The share of the weights that decay takes away this step."""
        lr, weight_decay = values["lr"], values["weight_decay"]
        if values["decay_mode"] != "independent":
            return lr * weight_decay
        # The schedule's multiplier scales the decay, the learning rate itself does not.
        peak = values["max_lr"] or _number(group.get("initial_lr", lr))
        if not isinstance(peak, Tensor) and peak == 0:
            return 0.0
        return helpers.decay_fraction(lr, weight_decay, "independent", ratio=lr / peak)

    def _reduce(self, batches: Sequence[Batch], groups: Sequence[dict[str, Any]], names: Iterable[str]) -> None:
        """The first phase of a global rule: sum, combine, and tell every group and batch."""
        totals: dict[str, Tensor] = {}
        for batch in batches:
            add_totals(totals, batch.engine.reduce(batch))
        rule = self._rule()
        memory = {name: groups[0][name] for name in names}
        combined = rule.combine(totals, memory, batches[0].scalars)
        for group in groups:
            group.update(memory)
        for batch in batches:
            vars(batch.scalars).update(memory)
            vars(batch.scalars).update(combined)
            rule.adjust(batch.scalars)

    # Checkpoints and copies -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The state as torch lays it out: ``state`` by parameter index, ``param_groups`` without tensors of parameters.

        Parameters that may train but never had a gradient are listed with their fresh state once any other
        has one, so that distributed checkpoints find the same keys everywhere. Large state tensors are live
        references, as in torch; those of bundled small parameters are copies.
        """
        return checkpoint.with_fresh_state(self, super().state_dict())

    def load_state_dict(
        self,
        state_dict: dict[str, Any],
        *,
        hyperparams: checkpoint.Hyperparams = "load",
        strict: bool = True,
        assign: bool = False,
    ) -> None:
        """Load a checkpoint of this optimizer, or of torch's optimizer of the same name.

        Parameters are matched by name where both sides have names, by position otherwise. State keeps the
        dtype it was saved with (``state_dtype`` of the loaded options converts it), moves to its parameter's
        device and is copied. On any error the optimizer is unchanged.

        Args:
            state_dict: what ``state_dict()`` returned, also through ``torch.save`` and ``weights_only=True``.
            hyperparams: "load" takes the saved options (torch's way; a warning lists what changed),
                "keep" stays with the options of this optimizer.
            strict: with False, state that fits nothing is dropped, and parameters without saved state start fresh.
            assign: take the saved tensors themselves where they fit, without a copy.

        Raises:
            ValueError: another number of groups or parameters, another optimizer's state, a state tensor of a
                shape that does not fit its parameter (which is named).
        """
        checkpoint.load(self, state_dict, hyperparams=hyperparams, strict=strict, assign=assign)

    def __getstate__(self) -> dict[str, Any]:
        # A scheduler replaces ``step`` of this very object by a function bound to it: no copy may take that along.
        left_out = ("_engines", "step", "_warned_capturable_if_run_uncaptured")
        return {k: v for k, v in self.__dict__.items() if not (k.endswith("_hooks") or k in left_out)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._engines = engines.EngineSet()

    def __repr__(self) -> str:
        """The constructor call, with the options that differ from the defaults."""
        if "defaults" not in self.__dict__:  # the instance without parameters that engines call
            return f"{type(self).__name__}()"
        options = self.config.changed()
        listed = "".join(f", {name}={value!r}" for name, value in options.items())
        count = sum(len(group["params"]) for group in self.param_groups)
        return f"{type(self).__name__}(<{count} parameters in {len(self.param_groups)} groups>{listed})"


def _list_of_groups(params: Any) -> Any:
    """``params`` with the caller's group dictionaries copied; torch checks the rest."""
    if isinstance(params, Tensor):
        return params
    if isinstance(params, (set, frozenset)):
        raise TypeError("a set of parameters has no order that a checkpoint could rely on; give a list")
    if not isinstance(params, Iterable):
        raise TypeError(f"params must be tensors, groups or (name, tensor) pairs, not {type(params).__name__}")
    return [dict(entry) if isinstance(entry, dict) else entry for entry in params]


def _own(value: Any) -> Any:
    """Each group owns its tensor hyperparameters: a scheduler that fills one must not fill the others."""
    return value.clone() if isinstance(value, Tensor) else value


def _keep_own_parts(p: Tensor, param: Tensor, tensors: Mapping[str, Tensor], wholes: Mapping[str, Tensor]) -> None:
    """Bring a gathered parameter and its gathered states back into their shards."""
    keep_own_part_(p, param)
    for name, tensor in tensors.items():
        if wholes[name] is not tensor:
            keep_own_part_(tensor, wholes[name])


def _number(value: Any) -> Any:
    """A CPU tensor that needs no gradient as a Python float; every other value as it is, tuples elementwise."""
    if isinstance(value, tuple):
        return tuple(_number(entry) for entry in value)
    if isinstance(value, Tensor):
        if value.device.type == "cpu" and not value.requires_grad:
            return float(value)
        return value.reshape(())
    return value
