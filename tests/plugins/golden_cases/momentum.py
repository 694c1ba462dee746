"""The momentum family, beside sgd."""

from __future__ import annotations

from .case import Case

# Other code sums the noise of a tensor, the paper scales each coordinate.
_A2GRAD = {"whole_tensor": True}

CASES = {
    "accsgd": Case("accsgd"),
    "aggmo": Case("aggmo"),
    # The reference's decay into the gradient is our default.
    "qhm": Case("qhm", rename={"weight_decay_type": None}),
    "pid": Case(
        "pid", departs="the port forgets the first gradient: its second difference is g₂ − 0, the paper's g₂ − g₁"
    ),
    "sgdw": Case("sgdw"),
    "sgdp": Case("sgdp"),
    "sgd_sai": Case("sgd_sai"),
    "lars": Case("lars"),
    "fromage.po": Case("fromage"),
    "nero.po": Case("nero"),
    "a2grad_uni": Case("a2grad_uni", options=_A2GRAD),
    "a2grad_inc": Case("a2grad_inc", options=_A2GRAD),
    "a2grad_exp": Case("a2grad_exp", options=_A2GRAD),
    "pnm.po": Case("pnm"),
    "srmm.po": Case("srmm", departs="the port's averages start at zero, and the new weights overwrite their average"),
    "tam.po": Case(
        "tam", departs="the port multiplies normalized columns where the paper takes the cosine of the tensors"
    ),
    # The port's β; the paper's is 1.
    "ftrl.po": Case("ftrl", options={"beta": 0.0}),
    "swats": Case("swats"),
    "kate.po": Case("kate"),
    "madgrad": Case("madgrad"),
    "madgrad.decoupled": Case("madgrad", rename={"decouple_decay": None}, options={"decay_mode": "decoupled"}),
    "mirror_madgrad": Case("mirror_madgrad"),
    "signsgd.po": Case("signsgd"),
    "asgd": Case("asgd"),
}
