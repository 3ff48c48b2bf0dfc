from namoo.optim.contrib.adaptive_rates import COCOBState as COCOBState
from namoo.optim.contrib.adaptive_rates import MadgradState as MadgradState
from namoo.optim.contrib.adaptive_rates import ScaleByAdemamixState as ScaleByAdemamixState
from namoo.optim.contrib.adaptive_rates import (
    ScaleBySimplifiedAdEMAMixState as ScaleBySimplifiedAdEMAMixState,
)
from namoo.optim.contrib.adaptive_rates import acprop as acprop
from namoo.optim.contrib.adaptive_rates import ademamix as ademamix
from namoo.optim.contrib.adaptive_rates import adopt as adopt
from namoo.optim.contrib.adaptive_rates import cocob as cocob
from namoo.optim.contrib.adaptive_rates import madgrad as madgrad
from namoo.optim.contrib.adaptive_rates import scale_by_acprop as scale_by_acprop
from namoo.optim.contrib.adaptive_rates import scale_by_ademamix as scale_by_ademamix
from namoo.optim.contrib.adaptive_rates import scale_by_adopt as scale_by_adopt
from namoo.optim.contrib.adaptive_rates import scale_by_cocob as scale_by_cocob
from namoo.optim.contrib.adaptive_rates import scale_by_madgrad as scale_by_madgrad
from namoo.optim.contrib.adaptive_rates import (
    scale_by_simplified_ademamix as scale_by_simplified_ademamix,
)
from namoo.optim.contrib.adaptive_rates import simplified_ademamix as simplified_ademamix
from namoo.optim.contrib.averaging import ScheduleFreeState as ScheduleFreeState
from namoo.optim.contrib.averaging import schedule_free as schedule_free
from namoo.optim.contrib.averaging import schedule_free_adamw as schedule_free_adamw
from namoo.optim.contrib.averaging import schedule_free_eval_params as schedule_free_eval_params
from namoo.optim.contrib.averaging import schedule_free_sgd as schedule_free_sgd
from namoo.optim.contrib.complex_values import (
    SplitRealAndImaginaryArrays as SplitRealAndImaginaryArrays,
)
from namoo.optim.contrib.complex_values import (
    SplitRealAndImaginaryState as SplitRealAndImaginaryState,
)
from namoo.optim.contrib.complex_values import split_real_and_imaginary as split_real_and_imaginary
from namoo.optim.contrib.hessian_diagonals import HutchinsonState as HutchinsonState
from namoo.optim.contrib.hessian_diagonals import SophiaState as SophiaState
from namoo.optim.contrib.hessian_diagonals import (
    hutchinson_estimator_diag_hessian as hutchinson_estimator_diag_hessian,
)
from namoo.optim.contrib.hessian_diagonals import scale_by_sophia as scale_by_sophia
from namoo.optim.contrib.hessian_diagonals import sophia as sophia
from namoo.optim.contrib.low_rank import GaLoreDimensionNumbers as GaLoreDimensionNumbers
from namoo.optim.contrib.low_rank import GaLoreState as GaLoreState
from namoo.optim.contrib.low_rank import galore as galore
from namoo.optim.contrib.low_rank import scale_by_galore as scale_by_galore
from namoo.optim.contrib.orthogonal import MuonDimensionNumbers as MuonDimensionNumbers
from namoo.optim.contrib.orthogonal import MuonState as MuonState
from namoo.optim.contrib.orthogonal import muon as muon
from namoo.optim.contrib.orthogonal import (
    orthogonalize_via_newton_schulz as orthogonalize_via_newton_schulz,
)
from namoo.optim.contrib.orthogonal import scale_by_muon as scale_by_muon
from namoo.optim.contrib.orthogonal import scale_by_shape as scale_by_shape
from namoo.optim.contrib.parameter_free import DAdaptAdamWState as DAdaptAdamWState
from namoo.optim.contrib.parameter_free import DoGState as DoGState
from namoo.optim.contrib.parameter_free import DoWGState as DoWGState
from namoo.optim.contrib.parameter_free import MechanicState as MechanicState
from namoo.optim.contrib.parameter_free import MomoAdamState as MomoAdamState
from namoo.optim.contrib.parameter_free import MomoState as MomoState
from namoo.optim.contrib.parameter_free import ProdigyState as ProdigyState
from namoo.optim.contrib.parameter_free import dadapt_adamw as dadapt_adamw
from namoo.optim.contrib.parameter_free import dog as dog
from namoo.optim.contrib.parameter_free import dowg as dowg
from namoo.optim.contrib.parameter_free import mechanize as mechanize
from namoo.optim.contrib.parameter_free import momo as momo
from namoo.optim.contrib.parameter_free import momo_adam as momo_adam
from namoo.optim.contrib.parameter_free import prodigy as prodigy
from namoo.optim.contrib.parameter_free import scale_by_dog as scale_by_dog
from namoo.optim.contrib.parameter_free import scale_by_dowg as scale_by_dowg
from namoo.optim.contrib.plateau import ReduceLROnPlateauState as ReduceLROnPlateauState
from namoo.optim.contrib.plateau import reduce_on_plateau as reduce_on_plateau
from namoo.optim.contrib.privacy import (
    DifferentiallyPrivateAggregateState as DifferentiallyPrivateAggregateState,
)
from namoo.optim.contrib.privacy import (
    differentially_private_aggregate as differentially_private_aggregate,
)
from namoo.optim.contrib.privacy import dpsgd as dpsgd
from namoo.optim.contrib.sharpness import NormalizeState as NormalizeState
from namoo.optim.contrib.sharpness import SAMState as SAMState
from namoo.optim.contrib.sharpness import normalize as normalize
from namoo.optim.contrib.sharpness import sam as sam

_TABLE: dict[str, str]
