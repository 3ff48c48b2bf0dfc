"""Younger optimisers, as Optax keeps them apart; `namoo.optim` has them all too."""

from namoo._lazy import lazy as _lazily

_TABLE = {
    "optim.contrib.averaging": (
        "ScheduleFreeState schedule_free schedule_free_adamw schedule_free_eval_params "
        "schedule_free_sgd"
    ),
    "optim.contrib.orthogonal": (
        "MuonDimensionNumbers MuonState muon orthogonalize_via_newton_schulz scale_by_muon "
        "scale_by_shape"
    ),
    "optim.contrib.sharpness": "NormalizeState SAMState normalize sam",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
