"""The adaptive family, beside adam and adamw: first half."""

from __future__ import annotations

from .case import Case

FOREACH = {"foreach": None}  # theirs picks an implementation; ours is tested in every engine
ADABELIEF = {"weight_decouple": None, "print_change_log": None}  # theirs is a bool, ours decay_mode

CASES = {
    "adamax": Case("adamax"),
    "nadam": Case("nadam"),
    "nadam.decoupled": Case("nadam"),
    "nadamw": Case("nadamw", FOREACH),
    "cautious.adamw": Case("nadamw", {**FOREACH, "caution": "cautious"}),
    "radam": Case("radam"),
    "radam.decoupled": Case("radam"),
    "adagrad": Case("adagrad"),
    "adadelta": Case("adadelta"),
    "rmsprop": Case("rmsprop"),
    "rmsprop.plain": Case("rmsprop"),
    "rmsprop_tf": Case("rmsprop_tf"),
    "rprop": Case("rprop"),
    "yogi": Case("yogi", departs="the port's first moment starts at initial_accumulator, not at zero"),
    "adabelief": Case("adabelief", ADABELIEF),
    "adabelief.amsgrad": Case("adabelief", ADABELIEF, {"decay_mode": "l2"}),
    "adabelief.rectify": Case("adabelief", ADABELIEF),
    "adabound": Case("adabound"),
    "adabound.amsbound": Case("adabound"),
    "adamod": Case("adamod"),
    "adamp": Case("adamp"),
    "adai.po": Case("adai"),
    "adashift.po": Case("adashift"),
    "adasmooth.po": Case("adasmooth"),
    # This port adds ε before the bias correction of v, and 1e-15 under the root; its β₂ is 0.99, the authors' 0.999.
    "adanorm.po": Case("adanorm", options={"betas": (0.9, 0.99)}, rtol=1e-5),
    "adapnm.po": Case("adapnm", rtol=1e-5),
    "adatam.po": Case(
        "adatam", departs="the port multiplies normalized columns where the paper takes the cosine of the tensors"
    ),
    "adan": Case("adan", FOREACH),
    "adan.no_prox": Case("adan", FOREACH),
    # The port's exponent; the authors' is 1/4.
    "adopt": Case("adopt", {**FOREACH, "decoupled": None}, {"clip_exponent": 0.333, "decay_mode": "decoupled"}),
    "laprop": Case("laprop"),
    "qhadam": Case("qhadam", {"decouple_weight_decay": None}),
    "diffgrad": Case("diffgrad"),
    # The paper's maximum of v is our default.
    "padam.po": Case("padam", options={"amsgrad": False}),
}
