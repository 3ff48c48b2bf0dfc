"""Younger optimisers, as Optax keeps them apart; `namoo.optim` has them all too."""

from namoo._lazy import lazy as _lazily

_TABLE = {
    "optim.contrib.adaptive_rates": (
        "COCOBState MadgradState ScaleByAdemamixState ScaleBySimplifiedAdEMAMixState acprop "
        "ademamix adopt cocob madgrad scale_by_acprop scale_by_ademamix scale_by_adopt "
        "scale_by_cocob scale_by_madgrad scale_by_simplified_ademamix simplified_ademamix"
    ),
    "optim.contrib.averaging": (
        "ScheduleFreeState schedule_free schedule_free_adamw schedule_free_eval_params "
        "schedule_free_sgd"
    ),
    "optim.contrib.complex_values": (
        "SplitRealAndImaginaryArrays SplitRealAndImaginaryState split_real_and_imaginary"
    ),
    "optim.contrib.hessian_diagonals": (
        "HutchinsonState SophiaState hutchinson_estimator_diag_hessian scale_by_sophia sophia"
    ),
    "optim.contrib.low_rank": "GaLoreDimensionNumbers GaLoreState galore scale_by_galore",
    "optim.contrib.orthogonal": (
        "MuonDimensionNumbers MuonState muon orthogonalize_via_newton_schulz scale_by_muon "
        "scale_by_shape"
    ),
    "optim.contrib.parameter_free": (
        "DAdaptAdamWState DoGState DoWGState MechanicState MomoAdamState MomoState ProdigyState "
        "dadapt_adamw dog dowg mechanize momo momo_adam prodigy scale_by_dog scale_by_dowg"
    ),
    "optim.contrib.plateau": "ReduceLROnPlateauState reduce_on_plateau",
    "optim.contrib.privacy": (
        "DifferentiallyPrivateAggregateState differentially_private_aggregate dpsgd"
    ),
    "optim.contrib.sharpness": "NormalizeState SAMState normalize sam",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
