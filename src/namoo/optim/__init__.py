"""Optimisers: Optax's protocol and names.

A transformation is a pair `(init, update)`; `chain` joins them, and an optimiser is such a chain.

>>> import namoo, namoo.numpy as jnp
>>> from namoo import optim
>>> opt = optim.chain(optim.clip_by_global_norm(1.0), optim.adam(0.1))
>>> params = {"w": jnp.array([1.0, 2.0])}
>>> state = opt.init(params)
>>> grads = namoo.grad(lambda p: jnp.sum(p["w"] ** 2))(params)
>>> updates, state = opt.update(grads, state, params)
>>> optim.apply_updates(params, updates)
{'w': Array([0.9000007, 1.9000007], dtype=float32)}
"""

from namoo._lazy import lazy as _lazily

_TABLE = {
    "optim.accumulation": (
        "ApplyEvery MultiSteps MultiStepsState ShouldSkipUpdateFunction apply_every "
        "skip_large_updates skip_not_finite"
    ),
    "optim.adams": (
        "ScaleByAdamState ScaleByAdanState ScaleByAmsgradState ScaleByBeliefState ScaleByLionState "
        "ScaleByNovogradState scale_by_adam scale_by_adamax scale_by_adan scale_by_amsgrad "
        "scale_by_belief scale_by_lion scale_by_novograd scale_by_radam scale_by_yogi"
    ),
    "optim.adaptive": (
        "adabelief adadelta adafactor adagrad adam adamax adamaxw adamw adan amsgrad lamb lion "
        "nadam nadamw novograd optimistic_adam optimistic_adam_v2 radam rmsprop sm3 yogi"
    ),
    "optim.adding": (
        "AddDecayedWeightsState AddNoiseState WeightDecaySchedule add_decayed_weights add_noise"
    ),
    "optim.backtracking": (
        "BacktrackingLinesearchInfo ScaleByBacktrackingLinesearchState "
        "scale_by_backtracking_linesearch value_and_grad_from_state"
    ),
    "optim.base": (
        "EmptyState GradientTransformation GradientTransformationExtraArgs MaskOrFn OptState "
        "Params ScalarOrSchedule Schedule StatefulSchedule TransformInitFn "
        "TransformUpdateExtraArgsFn TransformUpdateFn Updates apply_updates identity "
        "incremental_update init_empty_state periodic_update set_to_zero stateless "
        "stateless_with_tree_map with_extra_args_support"
    ),
    "optim.bridge": "from_optax to_optax",
    "optim.clipping": (
        "AdaptiveGradClipState ClipByGlobalNormState ClipState adaptive_grad_clip clip "
        "clip_by_block_rms clip_by_global_norm clip_by_leaf_norm per_example_global_norm_clip "
        "per_example_layer_norm_clip unitwise_clip unitwise_norm"
    ),
    "optim.combine": (
        "MultiTransformState PartitionState chain multi_transform named_chain partition"
    ),
    "optim.conditional": (
        "ApplyIfFiniteState ConditionFn ConditionallyMaskState ConditionallyTransformState "
        "apply_if_finite conditionally_mask conditionally_transform"
    ),
    "optim.constraining": "NonNegativeParamsState ZeroNansState keep_params_nonnegative zero_nans",
    "optim.contrib": ".",
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
    "optim.descent": (
        "fromage lars lbfgs noisy_sgd optimistic_gradient_descent polyak_sgd rprop sgd sign_sgd "
        "signum"
    ),
    "optim.distributions": "MultiNormalDiagFromLogScale multi_normal",
    "optim.freezing": "freeze selective_transform",
    "optim.inject": (
        "InjectHyperparamsState InjectStatefulHyperparamsState WrappedSchedule "
        "WrappedScheduleState inject_hyperparams inject_stateful_hyperparams"
    ),
    "optim.layouts": "flatten",
    "optim.linear_algebra": "matrix_inverse_pth_root nnls power_iteration",
    "optim.losses": ".",
    "optim.losses.classification": (
        "hinge_loss make_fenchel_young_loss multiclass_hinge_loss multiclass_perceptron_loss "
        "multiclass_sparsemax_loss perceptron_loss poly_loss_cross_entropy "
        "safe_softmax_cross_entropy sigmoid_binary_cross_entropy sigmoid_focal_loss "
        "softmax_cross_entropy softmax_cross_entropy_with_integer_labels sparsemax_loss"
    ),
    "optim.losses.divergences": (
        "convex_kl_divergence generalized_kl_divergence kl_divergence "
        "kl_divergence_with_log_targets smooth_labels"
    ),
    "optim.losses.embeddings": "ntxent ranking_softmax_loss triplet_margin_loss",
    "optim.losses.regression": (
        "cosine_distance cosine_similarity huber_loss l2_loss log_cosh squared_error"
    ),
    "optim.losses.segmentation": "binary_dice_loss dice_loss multiclass_generalized_dice_loss",
    "optim.losses.sequences": "ctc_loss ctc_loss_with_forward_probs",
    "optim.masking": "MaskedNode MaskedState masked",
    "optim.momentum": "EmaState TraceState ema trace",
    "optim.monitoring": "MonitorState SnapshotState measure_with_ema monitor snapshot",
    "optim.numerics": (
        "safe_increment safe_int32_increment safe_norm safe_root_mean_squares scale_gradient"
    ),
    "optim.perturbations": ".",
    "optim.projections": ".",
    "optim.quasi_newton": "ScaleByLBFGSState scale_by_lbfgs",
    "optim.scaling": (
        "ScaleByDistanceOverGradientsState ScaleByOptimisticGradientState ScaleByScheduleState "
        "ScaleByTrustRatioState ScaleState centralize normalize_by_update_norm scale "
        "scale_by_distance_over_gradients scale_by_learning_rate scale_by_optimistic_gradient "
        "scale_by_param_block_norm scale_by_param_block_rms scale_by_polyak scale_by_schedule "
        "scale_by_sign scale_by_trust_ratio"
    ),
    "optim.schedules": (
        ". constant_schedule cosine_decay_schedule cosine_onecycle_schedule exponential_decay "
        "join_schedules linear_onecycle_schedule linear_schedule piecewise_constant_schedule "
        "piecewise_interpolate_schedule polynomial_schedule sgdr_schedule warmup_constant_schedule "
        "warmup_cosine_decay_schedule warmup_exponential_decay_schedule"
    ),
    "optim.second_moments": (
        "FactoredState ScaleByAdaDeltaState ScaleByRStdDevState ScaleByRStdDevWithCountState "
        "ScaleByRmsState ScaleByRmsWithCountState ScaleByRssState ScaleBySM3State "
        "scale_by_adadelta scale_by_factored_rms scale_by_rms scale_by_rss scale_by_sm3 "
        "scale_by_stddev"
    ),
    "optim.sign_steps": "ScaleByRpropState scale_by_rprop",
    "optim.slow_weights": "LookaheadParams LookaheadState lookahead",
    "optim.transforms": ".",
    "optim.tree": ".",
    "optim.tree_utils": ".",
    "optim.tree_utils.arithmetic": (
        "bias_correction=tree_bias_correction global_norm "
        "update_infinity_moment=tree_update_infinity_moment update_moment=tree_update_moment "
        "update_moment_per_elem_norm=tree_update_moment_per_elem_norm"
    ),
    "optim.tree_utils.states": "tree_map_params",
    "optim.zoom": "ScaleByZoomLinesearchState ZoomLinesearchInfo scale_by_zoom_linesearch",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
