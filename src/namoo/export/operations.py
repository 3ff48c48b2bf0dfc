"""The operations that a file may contain, by name.

This list is part of the format: names are never removed. If an operation of the package is renamed,
its old name stays here with the same meaning.
"""

from __future__ import annotations

from typing import Any

from namoo._base.lazy import load_module

# Module -> names in files. The variable of `name` is `name_p`, with `_` for `-`; exceptions are
# written as `name=variable`.
_TABLE = {
    "control.bounded_loop": "bounded_while run_if",
    "control.call": "call closed_call jit",
    "control.cond": "cond",
    "control.reduce": "reduce reduce_window",
    "control.scan": "scan",
    "control.solves": "custom_linear_solve=linear_solve_p",
    "control.while_loop": "while",
    "primitives.arithmetic": """abs add ceil complex conj div floor imag is_finite mul neg nextafter
        real rem round sign sub""",
    "primitives.barriers": "after_all create_token dce_sink optimization_barrier rng_uniform",
    "primitives.bits": """and bitcast_convert_type clz mulhi not or population_count shift_left
        shift_right_arithmetic shift_right_logical xor""",
    "primitives.compare": "eq ge gt le lt ne select_n",
    "primitives.contract": "dot_general",
    "primitives.conv": "conv_general_dilated",
    "primitives.cumulative": "cumlogsumexp cummax cummin cumprod cumsum",
    "primitives.dimensions": "dim_as_value",
    "primitives.elementwise": """acos acosh asin asinh atan2 atan atanh cbrt clamp cos cosh exp2 exp
        expm1 integer_pow log1p log logistic max min pow rsqrt sin sinh sqrt square tan tanh""",
    "primitives.families": "add_any",
    "primitives.fft": "fft",
    "primitives.gather": """gather scatter scatter-add scatter-max scatter-min scatter-mul
        scatter-sub""",
    "primitives.linalg.qr": "geqrf householder_product ormqr qr",
    "primitives.linalg.spectral": "eig eigh svd",
    "primitives.linalg.similar_forms": "hessenberg schur tridiagonal",
    "primitives.linalg.systems": """cholesky lu lu_pivots_to_permutation triangular_solve
        tridiagonal_solve""",
    "primitives.linalg.tridiagonal_eigen": "eigh_tridiagonal",
    "primitives.linalg.updates": "cholesky_update symmetric_product",
    "primitives.random.gamma": "erf_inv random_gamma",
    "primitives.random.prng": """random_bits random_clone random_fold_in random_seed random_split
        random_unwrap random_wrap rng_bit_generator""",
    "primitives.reduce_window": """reduce_window_max reduce_window_min reduce_window_sum
        select_and_gather_add select_and_scatter_add""",
    "primitives.reduction": """argmax argmin reduce_and reduce_max reduce_min reduce_or
        reduce_precision reduce_prod reduce_xor""",
    "primitives.shape": """broadcast_in_dim convert_element_type copy iota reduce_sum reshape rev
        squeeze stop_gradient transpose""",
    "primitives.slicing": "concatenate dynamic_slice dynamic_update_slice pad slice",
    "primitives.sorting": "sort top_k",
    "primitives.special.functions": "digamma erf erfc lgamma polygamma zeta",
    "primitives.special.hypergeometric": "hyp1f1 hyp2f1",
    "primitives.special.incomplete": """bessel_i0e bessel_i1e igamma_grad_a igamma igammac
        random_gamma_grad regularized_incomplete_beta""",
    "primitives.special.more_functions": """bessel_jn betaln ci dawsn erfcx expi expn fresnel_c
        fresnel_s log_ndtr loggamma ndtri owens_t poch si spence sph_harm_y wofz""",
    "primitives.split": "split",
    "transforms.custom_forward": "remat_opt=forward_p",
    "transforms.linear_call": "linear_call",
    "transforms.remat": "name checkpoint=remat_p",
}

_PLACES: dict[str, tuple[str, str]] = {
    name: (f"namoo.{module}", variable or f"{name.replace('-', '_')}_p")
    for module, names in _TABLE.items()
    for name, _, variable in (entry.partition("=") for entry in names.split())
}

NAMES = frozenset(_PLACES)


def operation(name: str) -> Any:
    """Return the primitive that files call `name`.

    Raises:
        ValueError: there is none.

    Example:
        >>> operation("sin")
        sin
    """
    if name not in _PLACES:
        raise ValueError(f"unknown operation {name!r:.80}")
    module, variable = _PLACES[name]
    return getattr(load_module(module), variable)
