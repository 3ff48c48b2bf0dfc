"""The pieces of optimisers that Optax also keeps under this name; only a namespace."""

from namoo._lazy import lazy as _lazily

_TABLE = {
    "optim.accumulation": (
        "ApplyEvery MultiSteps MultiStepsState ShouldSkipUpdateFunction apply_every "
        "skip_large_updates skip_not_finite"
    ),
    "optim.adding": (
        "AddDecayedWeightsState AddNoiseState WeightDecaySchedule add_decayed_weights add_noise"
    ),
    "optim.clipping": (
        "AdaptiveGradClipState ClipByGlobalNormState ClipState adaptive_grad_clip clip "
        "clip_by_block_rms clip_by_global_norm clip_by_leaf_norm per_example_global_norm_clip "
        "per_example_layer_norm_clip unitwise_clip unitwise_norm"
    ),
    "optim.combine": "PartitionState chain named_chain partition",
    "optim.conditional": (
        "ApplyIfFiniteState ConditionFn ConditionallyMaskState ConditionallyTransformState "
        "apply_if_finite conditionally_mask conditionally_transform"
    ),
    "optim.constraining": "NonNegativeParamsState ZeroNansState keep_params_nonnegative zero_nans",
    "optim.freezing": "freeze selective_transform",
    "optim.layouts": "flatten",
    "optim.masking": "MaskedNode MaskedState masked",
    "optim.momentum": "EmaState TraceState ema trace",
    "optim.monitoring": "MonitorState SnapshotState measure_with_ema monitor snapshot",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
