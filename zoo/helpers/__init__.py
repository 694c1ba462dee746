"""Small typed functions that rules and the pipeline are made of; each can be used alone on plain tensors.

Functions that change a tensor in place end in ``_``. Numbers are Python floats or 0-dim tensors
(:data:`Scalar`) throughout; nothing reads a tensor's value.
"""

from .adanorm import adanorm_
from .ams_bound import adam_denominator, ams_bound_
from .bias_correction import adam_debias, debias, debias_beta
from .centralization import centralize
from .clip import adaptive_clip, clip_by_norm, clip_by_value, unit_norm
from .ema import ema_, ema_sq_, momentum_, nesterov, nesterov_ema
from .layer_adaptation import trust_ratio
from .low_precision import kahan_sub_, stochastic_round_
from .masking import CautiousVariant, cautious, signs_agree
from .orthogonal_gradient import orthograd
from .rectification import BelowThreshold, Rectification, rectify, sma_length, sma_length_limit
from .root_mean_square import foreach_rms, foreach_rms_clip, rms, rms_clip, stable_divisor
from .scalar import Scalar, add_, add_scaled, addcdiv_, addcmul_, maximum, minimum, per_tensor, sqrt, where
from .weight_decay import DecayMode, cautious_decay, decay_, decay_fraction, l2_decay
