"""Small typed functions that rules and the pipeline are made of; each can be used alone on plain tensors.

Functions that change a tensor in place end in ``_``. Numbers are Python floats or 0-dim tensors
(:data:`Scalar`) throughout; nothing reads a tensor's value.
"""

from .adanorm import adanorm_
from .ams_bound import adam_denominator, ams_bound_
from .bias_correction import adam_debias, debias, debias_beta
from .centralization import centralize
from .clip import adaptive_clip, clip_by_norm, clip_by_value, clip_ratio, unit_norm
from .ema import ema_, ema_sq_, momentum_, nesterov, nesterov_ema
from .factored import factored_ema_, factored_moment, factored_rsqrt, factored_zeros, is_factorable
from .hutchinson import (
    Distribution,
    assign_hessian,
    detach_grads_,
    gaussian_like,
    hutchinson_hessian,
    rademacher_like,
)
from .layer_adaptation import trust_ratio
from .low_precision import kahan_sub_, stochastic_round_
from .masking import CautiousVariant, cautious, signs_agree
from .orthogonal_gradient import orthograd
from .orthogonalization import QUINTIC, newton_schulz, polar_express
from .projection import project_scale_invariant
from .rectification import BelowThreshold, Rectification, rectify, sma_length, sma_length_limit
from .root_mean_square import foreach_rms, foreach_rms_clip, rms, rms_clip, stable_divisor
from .scalar import (
    Scalar,
    add_,
    add_scaled,
    addcdiv_,
    addcmul_,
    as_like,
    is_batched,
    maximum,
    minimum,
    per_tensor,
    sqrt,
    where,
)
from .state import all_finite, zero_scalar, zeros_like
from .table import HelperRow, helper_table
from .torch_parity import Trainable, collect_trainable, default_to_fused_or_foreach, maximize, view_as_real
from .update import Scaled, root_plus, scaled
from .weight_decay import DecayMode, cautious_decay, decay_, decay_fraction, l2_decay

__all__ = [
    "QUINTIC",
    "BelowThreshold",
    "CautiousVariant",
    "DecayMode",
    "Distribution",
    "HelperRow",
    "Rectification",
    "Scalar",
    "Scaled",
    "Trainable",
    "adam_debias",
    "adam_denominator",
    "adanorm_",
    "adaptive_clip",
    "add_",
    "add_scaled",
    "addcdiv_",
    "addcmul_",
    "all_finite",
    "ams_bound_",
    "as_like",
    "assign_hessian",
    "cautious",
    "cautious_decay",
    "centralize",
    "clip_by_norm",
    "clip_by_value",
    "clip_ratio",
    "collect_trainable",
    "debias",
    "debias_beta",
    "decay_",
    "decay_fraction",
    "default_to_fused_or_foreach",
    "detach_grads_",
    "ema_",
    "ema_sq_",
    "factored_ema_",
    "factored_moment",
    "factored_rsqrt",
    "factored_zeros",
    "foreach_rms",
    "foreach_rms_clip",
    "gaussian_like",
    "helper_table",
    "hutchinson_hessian",
    "is_batched",
    "is_factorable",
    "kahan_sub_",
    "l2_decay",
    "maximize",
    "maximum",
    "minimum",
    "momentum_",
    "nesterov",
    "nesterov_ema",
    "newton_schulz",
    "orthograd",
    "per_tensor",
    "polar_express",
    "project_scale_invariant",
    "rademacher_like",
    "rectify",
    "rms",
    "rms_clip",
    "root_plus",
    "scaled",
    "signs_agree",
    "sma_length",
    "sma_length_limit",
    "sqrt",
    "stable_divisor",
    "stochastic_round_",
    "trust_ratio",
    "unit_norm",
    "view_as_real",
    "where",
    "zero_scalar",
    "zeros_like",
]
