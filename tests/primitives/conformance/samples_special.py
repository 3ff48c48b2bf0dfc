"""Rows for `namoo.primitives.special.functions`."""

import numpy as np
import scipy.special as exact

from conformance.harness import Sample
from namoo.primitives.special import functions as sp
from namoo.primitives.special import incomplete

x = np.array([[-2.5, -0.6, 0.3], [0.9, 1.7, 4.2]])
inside = np.array([[-0.95, -0.6, -0.1], [0.2, 0.5, 0.9]])
positive = np.array([[0.3, 0.8, 1.5], [2.5, 7.0, 20.0]])
other = np.array([[0.5, 0.4, 2.5], [2.0, 9.0, 15.0]])
unit = np.array([[0.1, 0.3, 0.5], [0.7, 0.9, 0.4]])
order = np.array([[1.0, 2.0, 3.0], [1.0, 5.0, 2.0]])
narrow = ["float32", "bfloat16", "float16"]
poles = np.array([-np.inf, -3.0, -1.0, -0.0, 0.0, np.inf, np.nan])
nan, inf = np.nan, np.inf

SAMPLES = [
    Sample(sp.erf_p, [x], dtypes=narrow, oracle=exact.erf),
    Sample(
        sp.erf_p,
        [poles],
        name="limits",
        diff=(),
        expected=[-1, exact.erf(-3), exact.erf(-1), 0, 0, 1, nan],
    ),
    Sample(sp.erf_p, [np.array(0.7)], name="scalar"),
    Sample(sp.erfc_p, [x], dtypes=narrow, oracle=exact.erfc),
    Sample(sp.erf_inv_p, [inside], dtypes=narrow, oracle=exact.erfinv, tol=1e-4),
    Sample(
        sp.erf_inv_p,
        [np.array([-1.0, 1.0, 1.5, -0.0])],
        name="limits",
        diff=(),
        expected=[-inf, inf, nan, -0.0],
    ),
    Sample(sp.lgamma_p, [x], dtypes=narrow, oracle=exact.gammaln),
    Sample(
        sp.lgamma_p, [poles], name="poles", diff=(), expected=[inf, inf, inf, inf, inf, inf, nan]
    ),
    Sample(sp.digamma_p, [x], dtypes=narrow, oracle=exact.psi, dtype_tol=256),
    Sample(
        sp.digamma_p, [poles], name="poles", diff=(), expected=[nan, nan, nan, nan, nan, inf, nan]
    ),
    Sample(
        sp.polygamma_p, [order, positive], diff=(1,), dtypes=["float32"], oracle=exact.polygamma
    ),
    Sample(
        sp.polygamma_p,
        [np.array([-1.0, 0.5, 0.0, 2.0, nan]), np.array([2.0, 2.0, 1.0, 0.0, 1.0])],
        name="awkward",
        diff=(),
        expected=[nan, nan, exact.psi(1.0), nan, nan],
    ),
    Sample(sp.polygamma_p, [np.array(2.0), positive], name="scalar order", diff=(1,)),
    Sample(sp.zeta_p, [order + 1, positive], diff=(1,), oracle=exact.zeta),
    Sample(
        sp.zeta_p,
        [np.array([1.0, 0.5, 2.0, 3.0]), np.array([2.0, 2.0, 0.0, 0.0])],
        name="awkward",
        diff=(),
        expected=[inf, nan, inf, nan],
    ),
    Sample(
        incomplete.igamma_p,
        [positive, other],
        dtypes=narrow,
        oracle=exact.gammainc,
        second_order=False,
    ),
    Sample(incomplete.igamma_p, [positive, other], name="second derivative by x", diff=(1,)),
    Sample(
        incomplete.igammac_p,
        [positive, other],
        dtypes=narrow,
        oracle=exact.gammaincc,
        second_order=False,
    ),
    Sample(incomplete.igammac_p, [other, positive], name="second derivative by x", diff=(1,)),
    Sample(incomplete.igamma_grad_a_p, [positive, other], diff=(1,), dtypes=["float32"]),
    Sample(
        incomplete.igamma_grad_a_p,
        [np.array([1.0, -1.0, 1.0, 1.0, nan]), np.array([0.0, 1.0, -1.0, inf, 1.0])],
        name="awkward",
        diff=(),
        expected=[0, nan, nan, nan, nan],
    ),
    Sample(
        incomplete.random_gamma_grad_p, [positive, other], diff=(1,), dtypes=["float32", "bfloat16"]
    ),
    Sample(incomplete.random_gamma_grad_p, [np.array(2.0), other], name="scalar shape", diff=(1,)),
    Sample(
        incomplete.regularized_incomplete_beta_p,
        [positive, other, unit],
        diff=(2,),
        dtypes=narrow,
        oracle=exact.betainc,
    ),
    Sample(incomplete.bessel_i0e_p, [x], dtypes=narrow, oracle=exact.i0e),
    Sample(incomplete.bessel_i1e_p, [x], dtypes=narrow, oracle=exact.i1e),
    Sample(
        incomplete.bessel_i1e_p, [np.array([0.0, -0.0])], name="zero", second_order=False, tol=2e-3
    ),
]
