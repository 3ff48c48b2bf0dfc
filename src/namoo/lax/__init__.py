"""`namoo.lax`: the primitive operations by their public names; only a namespace."""

from namoo._lazy import lazy as _lazily

_TABLE = {
    "api.grad": "stop_gradient",
    "api.jit": "composite",
    "api.sharded": "with_sharding_constraint",
    "control.axes": "all_gather_p all_to_all_p axis_index_p pmax_p pmin_p ppermute_p psum_p",
    "control.collectives": (
        "all_gather all_to_all axis_index axis_size pbroadcast pcast pmax pmean pmin ppermute "
        "pshuffle psum psum_scatter pswapaxes ragged_all_to_all"
    ),
    "control.cond": "cond cond_p platform_dependent switch",
    "control.loops": "associative_scan fori_loop map scan while_loop",
    "control.reduce": "reduce reduce_p reduce_window reduce_window_p",
    "control.scan": "scan_p",
    "control.scatter_apply": "scatter_apply",
    "control.solves": "custom_linear_solve custom_root linear_solve_p",
    "control.whileloop": "while_p",
    "lax.linalg": ".",
    "primitives.arithmetic": (
        "abs abs_p add add_p ceil ceil_p complex complex_p conj div div_p floor floor_p "
        "imag imag_p is_finite is_finite_p mul mul_p neg neg_p nextafter nextafter_p real real_p "
        "rem rem_p round round_p RoundingMethod sign sign_p sub sub_p"
    ),
    "primitives.arrange": (
        "broadcast_like broadcast_shapes broadcast_to_rank collapse dtype empty full_like "
        "shape_as_value stack stage tile unstack"
    ),
    "primitives.barrier": (
        "after_all after_all_p create_token create_token_p dce_sink dce_sink_p "
        "optimization_barrier optimization_barrier_p rng_uniform rng_uniform_p"
    ),
    "primitives.bits": (
        "and_p bitcast_convert_type bitcast_convert_type_p bitwise_and bitwise_not bitwise_or "
        "bitwise_xor clz clz_p mulhi mulhi_p not_p or_p population_count population_count_p "
        "shift_left shift_left_p shift_right_arithmetic shift_right_arithmetic_p "
        "shift_right_logical shift_right_logical_p xor_p"
    ),
    "primitives.compare": (
        "eq eq_p ge ge_p gt gt_p le le_p lt lt_p ne ne_p select select_n select_n_p"
    ),
    "primitives.contract": "batch_matmul dot dot_general dot_general_p DotDimensionNumbers",
    "primitives.conv": "conv_general_dilated conv_general_dilated_p",
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
        "cumlogsumexp cumlogsumexp_p cummax cummax_p cummin cummin_p cumprod cumprod_p cumsum "
        "cumsum_p"
    ),
    "primitives.elementwise": (
        "acos acos_p acosh acosh_p asin asin_p asinh asinh_p atan atan2 atan2_p atan_p atanh "
        "atanh_p cbrt cbrt_p clamp clamp_p cos cos_p cosh cosh_p exp exp2 exp2_p exp_p expm1 "
        "expm1_p integer_pow integer_pow_p log log1p log1p_p log_p logistic logistic_p max max_p "
        "min min_p pow pow_p reciprocal rsqrt rsqrt_p sin sin_p sinh sinh_p sqrt sqrt_p square "
        "square_p tan tan_p tanh tanh_p"
    ),
    "primitives.fft": "fft fft_p FftType",
    "primitives.gather": (
        "gather gather_p scatter scatter_add scatter_add_p scatter_max scatter_max_p scatter_min "
        "scatter_min_p scatter_mul scatter_mul_p scatter_p scatter_sub scatter_sub_p"
    ),
    "primitives.grouped": "ragged_dot ragged_dot_general RaggedDotDimensionNumbers scaled_dot",
    "primitives.index_take": "index_take",
    "primitives.precision": (
        "AccuracyMode DotAlgorithm DotAlgorithmPreset Precision PrecisionLike Tolerance"
    ),
    "primitives.prng": "RandomAlgorithm rng_bit_generator rng_bit_generator_p",
    "primitives.reduction": (
        "argmax argmax_p argmin argmin_p reduce_and reduce_and_p reduce_max reduce_max_p "
        "reduce_min reduce_min_p reduce_or reduce_or_p reduce_precision reduce_precision_p "
        "reduce_prod reduce_prod_p reduce_xor reduce_xor_p"
    ),
    "primitives.shape": (
        "broadcast broadcast_in_dim broadcast_in_dim_p broadcasted_iota convert_element_type "
        "convert_element_type_p copy_p expand_dims full iota iota_p reduce_sum reduce_sum_p "
        "reshape reshape_p rev rev_p squeeze squeeze_p stop_gradient_p transpose transpose_p"
    ),
    "primitives.slicing": (
        "concatenate concatenate_p dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim "
        "dynamic_slice_p dynamic_update_index_in_dim dynamic_update_slice "
        "dynamic_update_slice_in_dim dynamic_update_slice_p index_in_dim pad pad_p slice "
        "slice_in_dim slice_p"
    ),
    "primitives.sorting": "approx_max_k approx_min_k sort sort_key_val sort_p top_k top_k_p",
    "primitives.special": (
        "bessel_i0e bessel_i0e_p bessel_i1e bessel_i1e_p betainc digamma digamma_p erf erf_inv "
        "erf_inv_p erf_p erfc erfc_p igamma igamma_grad_a igamma_grad_a_p igamma_p igammac "
        "igammac_p lgamma lgamma_p polygamma polygamma_p random_gamma_grad "
        "regularized_incomplete_beta_p zeta zeta_p"
    ),
    "primitives.split": "split split_p",
    "primitives.window": (
        "reduce_window_max_p reduce_window_min_p reduce_window_shape_tuple reduce_window_sum_p "
        "select_and_gather_add_p select_and_scatter_add_p"
    ),
    "primitives.windows": "GatherDimensionNumbers GatherScatterMode ScatterDimensionNumbers",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE, guarded=True)
