"""`__all__` of the modules, by folder.  Written by `make stubs`."""

PUBLIC = {
    "optim": {
        "optim.alias": (
            "adabelief adadelta adafactor adagrad adam adamax adamaxw adamw adan amsgrad "
            "fromage lamb lars lbfgs lion nadam nadamw noisy_sgd novograd optimistic_adam "
            "optimistic_adam_v2 optimistic_gradient_descent polyak_sgd radam rmsprop rprop sgd "
            "sign_sgd signum sm3 yogi"
        ),
        "optim.base": (
            "apply_updates EmptyState GradientTransformation GradientTransformationExtraArgs "
            "identity incremental_update init_empty_state MaskOrFn OptState Params "
            "periodic_update ScalarOrSchedule Schedule set_to_zero StatefulSchedule stateless "
            "stateless_with_tree_map TransformInitFn TransformUpdateExtraArgsFn "
            "TransformUpdateFn Updates with_extra_args_support"
        ),
        "optim.bridge": ("from_optax to_optax"),
        "optim.distributions": ("multi_normal MultiNormalDiagFromLogScale"),
        "optim.inject": (
            "inject_hyperparams inject_stateful_hyperparams InjectHyperparamsState "
            "InjectStatefulHyperparamsState WrappedSchedule WrappedScheduleState"
        ),
        "optim.linear_algebra": ("matrix_inverse_pth_root nnls power_iteration"),
        "optim.linesearch": (
            "BacktrackingLinesearchInfo scale_by_backtracking_linesearch "
            "scale_by_zoom_linesearch ScaleByBacktrackingLinesearchState "
            "ScaleByZoomLinesearchState value_and_grad_from_state ZoomLinesearchInfo"
        ),
        "optim.lookahead": ("lookahead LookaheadParams LookaheadState"),
        "optim.numerics": (
            "safe_increment safe_int32_increment safe_norm safe_root_mean_squares scale_gradient"
        ),
        "optim.perturbations": ("Normal Gumbel make_perturbed_fun"),
        "optim.projections": (
            "projection_box projection_halfspace projection_hypercube projection_hyperplane "
            "projection_l1_ball projection_l1_sphere projection_l2_ball projection_l2_sphere "
            "projection_linf_ball projection_non_negative projection_simplex projection_vector"
        ),
        "optim.schedules": (
            "constant_schedule cosine_decay_schedule cosine_onecycle_schedule exponential_decay "
            "join_schedules linear_onecycle_schedule linear_schedule "
            "piecewise_constant_schedule piecewise_interpolate_schedule polynomial_schedule "
            "sgdr_schedule warmup_constant_schedule warmup_cosine_decay_schedule "
            "warmup_exponential_decay_schedule"
        ),
    },
    "optim.losses": {
        "optim.losses.classification": (
            "hinge_loss make_fenchel_young_loss multiclass_hinge_loss "
            "multiclass_perceptron_loss multiclass_sparsemax_loss perceptron_loss "
            "poly_loss_cross_entropy safe_softmax_cross_entropy sigmoid_binary_cross_entropy "
            "sigmoid_focal_loss softmax_cross_entropy softmax_cross_entropy_with_integer_labels "
            "sparsemax_loss"
        ),
        "optim.losses.divergences": (
            "convex_kl_divergence generalized_kl_divergence kl_divergence "
            "kl_divergence_with_log_targets smooth_labels"
        ),
        "optim.losses.embeddings": ("ntxent ranking_softmax_loss triplet_margin_loss"),
        "optim.losses.regression": (
            "cosine_distance cosine_similarity huber_loss l2_loss log_cosh squared_error"
        ),
        "optim.losses.segmentation": (
            "binary_dice_loss dice_loss multiclass_generalized_dice_loss"
        ),
        "optim.losses.sequences": ("ctc_loss ctc_loss_with_forward_probs"),
    },
    "optim.transforms": {
        "optim.transforms.accumulation": (
            "apply_every ApplyEvery MultiSteps MultiStepsState ShouldSkipUpdateFunction "
            "skip_large_updates skip_not_finite"
        ),
        "optim.transforms.adam": (
            "scale_by_adam scale_by_adamax scale_by_adan scale_by_amsgrad scale_by_belief "
            "scale_by_lion scale_by_novograd scale_by_radam scale_by_yogi ScaleByAdamState "
            "ScaleByAdanState ScaleByAmsgradState ScaleByBeliefState ScaleByLionState "
            "ScaleByNovogradState"
        ),
        "optim.transforms.adding": (
            "add_decayed_weights add_noise AddDecayedWeightsState AddNoiseState WeightDecaySchedule"
        ),
        "optim.transforms.clipping": (
            "adaptive_grad_clip AdaptiveGradClipState clip clip_by_block_rms "
            "clip_by_global_norm clip_by_leaf_norm ClipByGlobalNormState ClipState "
            "per_example_global_norm_clip per_example_layer_norm_clip unitwise_clip "
            "unitwise_norm"
        ),
        "optim.transforms.combining": (
            "chain multi_transform MultiTransformState named_chain partition PartitionState"
        ),
        "optim.transforms.conditionality": (
            "apply_if_finite ApplyIfFiniteState conditionally_mask conditionally_transform "
            "ConditionallyMaskState ConditionallyTransformState ConditionFn"
        ),
        "optim.transforms.constraining": (
            "keep_params_nonnegative NonNegativeParamsState zero_nans ZeroNansState"
        ),
        "optim.transforms.freezing": ("freeze selective_transform"),
        "optim.transforms.layouts": ("flatten"),
        "optim.transforms.lbfgs": ("scale_by_lbfgs ScaleByLBFGSState"),
        "optim.transforms.masking": ("masked MaskedNode MaskedState"),
        "optim.transforms.momentum": ("ema EmaState trace TraceState"),
        "optim.transforms.monitoring": (
            "measure_with_ema monitor MonitorState snapshot SnapshotState"
        ),
        "optim.transforms.rms": (
            "FactoredState scale_by_adadelta scale_by_factored_rms scale_by_rms scale_by_rss "
            "scale_by_sm3 scale_by_stddev ScaleByAdaDeltaState ScaleByRmsState "
            "ScaleByRmsWithCountState ScaleByRssState ScaleByRStdDevState "
            "ScaleByRStdDevWithCountState ScaleBySM3State"
        ),
        "optim.transforms.rprop": ("scale_by_rprop ScaleByRpropState"),
        "optim.transforms.scaling": (
            "centralize normalize_by_update_norm scale scale_by_distance_over_gradients "
            "scale_by_learning_rate scale_by_optimistic_gradient scale_by_param_block_norm "
            "scale_by_param_block_rms scale_by_polyak scale_by_schedule scale_by_sign "
            "scale_by_trust_ratio ScaleByDistanceOverGradientsState "
            "ScaleByOptimisticGradientState ScaleByScheduleState ScaleByTrustRatioState "
            "ScaleState"
        ),
    },
    "optim.tree_utils": {
        "optim.tree_utils.casting": ("tree_cast tree_cast_like tree_dtype"),
        "optim.tree_utils.random": (
            "tree_random_like tree_split_key_like tree_unwrap_random_key_data"
        ),
        "optim.tree_utils.state_utils": (
            "NamedTupleKey tree_get tree_get_all_with_path tree_map_params tree_set"
        ),
        "optim.tree_utils.tree_math": (
            "tree_add tree_add_scale tree_allclose tree_batch_shape tree_bias_correction "
            "tree_clip tree_conj tree_div tree_full_like tree_max tree_min tree_mul tree_norm "
            "tree_ones_like tree_real tree_scale tree_size tree_sub tree_sum "
            "tree_update_infinity_moment tree_update_moment tree_update_moment_per_elem_norm "
            "tree_vdot tree_where tree_zeros_like"
        ),
    },
    "primitives": {
        "primitives.arithmetic": (
            "abs abs_p add add_p ceil ceil_p complex complex_p conj conj_p div div_p floor "
            "floor_p imag imag_p is_finite is_finite_p mul mul_p neg neg_p nextafter "
            "nextafter_p real real_p rem rem_p round round_p RoundingMethod sign sign_p sub "
            "sub_p"
        ),
        "primitives.arrangement": (
            "broadcast_like broadcast_shapes broadcast_to_rank collapse dtype empty full_like "
            "shape_as_value stack stage tile unstack"
        ),
        "primitives.barriers": (
            "after_all after_all_p create_token create_token_p dce_sink dce_sink_p "
            "optimization_barrier optimization_barrier_p rng_uniform rng_uniform_p"
        ),
        "primitives.bits": (
            "and_p bitcast_convert_type bitcast_convert_type_p bitwise_and bitwise_not "
            "bitwise_or bitwise_xor clz clz_p mulhi mulhi_p not_p or_p population_count "
            "population_count_p shift_left shift_left_p shift_right_arithmetic "
            "shift_right_arithmetic_p shift_right_logical shift_right_logical_p xor_p"
        ),
        "primitives.compare": (
            "eq eq_p ge ge_p gt gt_p le le_p lt lt_p ne ne_p select select_n select_n_p"
        ),
        "primitives.contract": ("batch_matmul dot dot_general dot_general_p DotDimensionNumbers"),
        "primitives.conv": ("conv_general_dilated conv_general_dilated_p"),
        "primitives.conv_shapes": (
            "conv_dimension_numbers conv_general_permutations conv_general_shape_tuple "
            "conv_shape_tuple conv_transpose_shape_tuple ConvDimensionNumbers "
            "ConvGeneralDilatedDimensionNumbers padtype_to_pads"
        ),
        "primitives.conv_variants": (
            "conv conv_general_dilated_local conv_general_dilated_patches conv_transpose "
            "conv_with_general_padding"
        ),
        "primitives.cumulative": (
            "cumlogsumexp cumlogsumexp_p cummax cummax_p cummin cummin_p cumprod cumprod_p "
            "cumsum cumsum_p"
        ),
        "primitives.elementwise": (
            "acos acos_p acosh acosh_p asin asin_p asinh asinh_p atan atan2 atan2_p atan_p "
            "atanh atanh_p cbrt cbrt_p clamp clamp_p cos cos_p cosh cosh_p exp exp2 exp2_p "
            "exp_p expm1 expm1_p integer_pow integer_pow_p log log1p log1p_p log_p logistic "
            "logistic_p max max_p min min_p pow pow_p reciprocal rsqrt rsqrt_p sin sin_p sinh "
            "sinh_p sqrt sqrt_p square square_p tan tan_p tanh tanh_p"
        ),
        "primitives.fft": ("fft fft_p FftType"),
        "primitives.gather": (
            "gather gather_p scatter scatter_add scatter_add_p scatter_max scatter_max_p "
            "scatter_min scatter_min_p scatter_mul scatter_mul_p scatter_p scatter_sub "
            "scatter_sub_p"
        ),
        "primitives.gather_dimensions": (
            "GatherDimensionNumbers GatherScatterMode ScatterDimensionNumbers"
        ),
        "primitives.index_take": ("index_take"),
        "primitives.precision": (
            "AccuracyMode DotAlgorithm DotAlgorithmPreset Precision PrecisionLike Tolerance"
        ),
        "primitives.ragged": ("ragged_dot ragged_dot_general RaggedDotDimensionNumbers scaled_dot"),
        "primitives.reduce_window": (
            "reduce_window_max_p reduce_window_min_p reduce_window_shape_tuple "
            "reduce_window_sum_p select_and_gather_add_p select_and_scatter_add_p"
        ),
        "primitives.reduction": (
            "argmax argmax_p argmin argmin_p reduce_and reduce_and_p reduce_max reduce_max_p "
            "reduce_min reduce_min_p reduce_or reduce_or_p reduce_precision reduce_precision_p "
            "reduce_prod reduce_prod_p reduce_xor reduce_xor_p"
        ),
        "primitives.shape": (
            "broadcast broadcast_in_dim broadcast_in_dim_p broadcasted_iota "
            "convert_element_type convert_element_type_p copy_p expand_dims full iota iota_p "
            "reduce_sum reduce_sum_p reshape reshape_p rev rev_p squeeze squeeze_p "
            "stop_gradient_p transpose transpose_p"
        ),
        "primitives.slicing": (
            "concatenate concatenate_p dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim "
            "dynamic_slice_p dynamic_update_index_in_dim dynamic_update_slice "
            "dynamic_update_slice_in_dim dynamic_update_slice_p index_in_dim pad pad_p slice "
            "slice_in_dim slice_p"
        ),
        "primitives.sorting": ("approx_max_k approx_min_k sort sort_key_val sort_p top_k top_k_p"),
        "primitives.split": ("split split_p"),
    },
    "primitives.linalg": {
        "primitives.linalg.qr": ("householder_product householder_product_p ormqr ormqr_p qr qr_p"),
        "primitives.linalg.similar_forms": (
            "hessenberg hessenberg_p schur schur_p tridiagonal tridiagonal_p"
        ),
        "primitives.linalg.spectral": (
            "eig eig_p eigh eigh_p EighImplementation EigImplementation svd svd_p SvdAlgorithm"
        ),
        "primitives.linalg.systems": (
            "cholesky cholesky_p lu lu_p lu_pivots_to_permutation lu_pivots_to_permutation_p "
            "triangular_solve triangular_solve_p tridiagonal_solve tridiagonal_solve_p"
        ),
        "primitives.linalg.updates": (
            "cholesky_update cholesky_update_p symmetric_product symmetric_product_p"
        ),
    },
    "primitives.random": {
        "primitives.random.prng": ("RandomAlgorithm rng_bit_generator rng_bit_generator_p"),
    },
    "primitives.special": {
        "primitives.special.functions": (
            "digamma digamma_p erf erf_inv erf_inv_p erf_p erfc erfc_p lgamma lgamma_p "
            "polygamma polygamma_p zeta zeta_p"
        ),
        "primitives.special.incomplete": (
            "bessel_i0e bessel_i0e_p bessel_i1e bessel_i1e_p betainc igamma igamma_grad_a "
            "igamma_grad_a_p igamma_p igammac igammac_p random_gamma_grad "
            "regularized_incomplete_beta_p"
        ),
    },
}
