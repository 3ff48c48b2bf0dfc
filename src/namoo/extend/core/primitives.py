"""The operations that programs are made of, by JAX's names, to be told apart in a program.

>>> import namoo
>>> [eqn] = namoo.make_jaxpr(namoo.lax.sin)(1.0).eqns
>>> eqn.primitive is namoo.extend.core.primitives.sin_p
True
"""

from namoo._lazy import lazy as _lazily

_TABLE = {
    "control.axes": "all_gather_p all_to_all_p axis_index_p pmax_p pmin_p ppermute_p psum_p",
    "control.call": "call_p closed_call_p jit_p",
    "control.cond": "cond_p",
    "control.constraint": "device_put_p sharding_constraint_p",
    "control.reduce": "reduce_p reduce_window_p",
    "control.scan": "scan_p",
    "control.solves": "linear_solve_p",
    "control.whileloop": "while_p",
    "primitives.arithmetic": (
        "abs_p add_p ceil_p complex_p div_p floor_p imag_p is_finite_p mul_p neg_p nextafter_p "
        "real_p rem_p round_p sign_p sub_p"
    ),
    "primitives.barrier": "after_all_p create_token_p rng_uniform_p",
    "primitives.bits": (
        "and_p bitcast_convert_type_p clz_p not_p or_p population_count_p shift_left_p "
        "shift_right_arithmetic_p shift_right_logical_p xor_p"
    ),
    "primitives.compare": "eq_p ge_p gt_p le_p lt_p ne_p select_n_p",
    "primitives.contract": "dot_general_p",
    "primitives.conv": "conv_general_dilated_p",
    "primitives.cumulative": "cumlogsumexp_p cummax_p cummin_p cumprod_p cumsum_p",
    "primitives.decompositions": "eig_p eigh_p hessenberg_p schur_p svd_p tridiagonal_p",
    "primitives.elementwise": (
        "acos_p acosh_p asin_p asinh_p atan2_p atan_p atanh_p cbrt_p clamp_p cos_p cosh_p "
        "exp2_p exp_p expm1_p integer_pow_p log1p_p log_p logistic_p max_p min_p pow_p rsqrt_p "
        "sin_p sinh_p sqrt_p square_p tan_p tanh_p"
    ),
    "primitives.families": "add_jaxvals_p=add_any_p",
    "primitives.fft": "fft_p",
    "primitives.gamma": "random_gamma_p",
    "primitives.gather": (
        "gather_p scatter_add_p scatter_max_p scatter_min_p scatter_mul_p scatter_p"
    ),
    "primitives.linalg": "cholesky_p lu_p triangular_solve_p tridiagonal_solve_p",
    "primitives.prng": (
        "random_bits_p random_fold_in_p random_seed_p random_split_p rng_bit_generator_p"
    ),
    "primitives.qr": "householder_product_p qr_p",
    "primitives.reduction": (
        "argmax_p argmin_p reduce_and_p reduce_max_p reduce_min_p reduce_or_p "
        "reduce_precision_p reduce_prod_p reduce_xor_p"
    ),
    "primitives.shape": (
        "broadcast_in_dim_p convert_element_type_p copy_p iota_p reduce_sum_p reshape_p rev_p "
        "squeeze_p stop_gradient_p transpose_p"
    ),
    "primitives.slicing": "concatenate_p dynamic_slice_p dynamic_update_slice_p pad_p slice_p",
    "primitives.sorting": "sort_p top_k_p",
    "primitives.special": (
        "bessel_i0e_p bessel_i1e_p digamma_p erf_inv_p erf_p erfc_p igamma_grad_a_p igamma_p "
        "igammac_p lgamma_p polygamma_p regularized_incomplete_beta_p zeta_p"
    ),
    "primitives.window": (
        "reduce_window_max_p reduce_window_min_p reduce_window_sum_p select_and_gather_add_p "
        "select_and_scatter_add_p"
    ),
    "transforms.custom_call": (
        "custom_jvp_call_p=custom_jvp_program_p custom_lin_p custom_vjp_call_p=custom_vjp_program_p"
    ),
    "transforms.remat": "name_p remat_p",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
