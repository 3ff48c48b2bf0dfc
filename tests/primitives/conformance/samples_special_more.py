"""Rows for `primitives.special`: `more_functions` and `hypergeometric`."""

import numpy as np
import scipy.special as exact

from conformance.harness import Sample
from namoo.primitives.special import hypergeometric as hyp
from namoo.primitives.special import more_functions as sp

x = np.array([[-2.5, -0.6, 0.3], [0.9, 1.7, 4.2]])
positive = np.array([[0.3, 0.8, 1.5], [2.5, 7.0, 30.0]])
other = np.array([[0.5, 0.4, 2.5], [2.0, 9.0, 15.0]])
unit = np.array([[0.1, 0.3, 0.5], [0.7, 0.9, 0.4]])
z = np.array([[-1.5 + 0.3j, 0.2 - 2.0j, 0.7 + 0.1j], [2.5 + 1.0j, -3.3 - 0.4j, 0.4 + 0.6j]])
n = np.array([[0, 1, 2], [3, 3, 5]])
m = np.array([[0, -1, 2], [0, -3, 4]])
narrow = ["float32", "bfloat16", "float16"]
nan, inf = np.nan, np.inf
even = np.array([[0, 0, 2], [0, -2, 4]])

SAMPLES = [
    Sample(sp.erfcx_p, [x], dtypes=narrow, oracle=exact.erfcx),
    Sample(sp.erfcx_p, [np.array([24.9, 25.1, 400.0])], name="tail", tol=1e-4),
    Sample(sp.wofz_p, [z], oracle=exact.wofz),
    Sample(sp.dawsn_p, [x], dtypes=narrow, oracle=exact.dawsn),
    Sample(sp.dawsn_p, [np.array([-400.0, -25.1, -24.9, 30.0])], name="tail", tol=1e-4),
    Sample(sp.log_ndtr_p, [x], dtypes=narrow, oracle=exact.log_ndtr),
    Sample(sp.log_ndtr_p, [np.array([-40.0, -12.0, 9.0])], name="far", tol=1e-4),
    Sample(sp.ndtri_p, [unit], dtypes=narrow, oracle=exact.ndtri),
    Sample(
        sp.ndtri_p,
        [np.array([-0.1, 0.0, 0.5, 1.0, 1.1, nan])],
        name="limits",
        diff=(),
        expected=[nan, -inf, 0, inf, nan, nan],
    ),
    Sample(sp.owens_t_p, [x, other], dtypes=narrow, oracle=exact.owens_t),
    Sample(sp.owens_t_p, [np.array(0.5), other], name="scalar h"),
    Sample(sp.expi_p, [x], dtypes=narrow, oracle=exact.expi),
    Sample(sp.expi_p, [np.array([0.0, inf, -inf])], diff=(), expected=[-inf, inf, 0]),
    Sample(sp.expn_p, [np.round(other), positive], diff=(1,), dtypes=["float32"]),
    Sample(sp.expn_p, [np.array(1.0), positive], name="exp1", diff=(1,)),
    Sample(sp.expn_p, [np.array([-1.5, 0.4, 1.6, 1.6]), np.array([0.5, 2.0, 0.4, 3.0])], diff=(1,)),
    Sample(
        sp.expn_p,
        [np.array([1.0, 2.0, 1.5, -1.0, 3e9, 2.0, 1.5]), np.array([0, 0, 0, 0, 2.0, -1.0, inf])],
        name="limits",
        diff=(),
        expected=[inf, 1, 2, inf, np.exp(-2) / 3e9, nan, 0],
    ),
    Sample(sp.si_p, [x], dtypes=narrow, oracle=lambda x: exact.sici(x)[0]),
    Sample(sp.si_p, [np.array([0.0, -1e-3, 0.015, 0.03])], name="near zero"),
    Sample(sp.ci_p, [x], dtypes=narrow, oracle=lambda x: exact.sici(x)[1], dtype_tol=256),
    Sample(sp.fresnel_s_p, [x], dtypes=["float32"], oracle=lambda x: exact.fresnel(x)[0]),
    Sample(sp.fresnel_c_p, [x], dtypes=["float32"], oracle=lambda x: exact.fresnel(x)[1]),
    Sample(sp.spence_p, [positive], dtypes=narrow, oracle=exact.spence),
    Sample(sp.spence_p, [np.array([0.97, 0.99, 1.0, 1.01, 1.03])], name="near one"),
    Sample(
        sp.spence_p,
        [np.array([-1.0, -0.0, 0.0, 1.0, nan])],
        name="limits",
        diff=(),
        expected=[nan, np.pi**2 / 6, np.pi**2 / 6, 0, nan],
    ),
    Sample(sp.loggamma_p, [z], oracle=exact.loggamma),
    Sample(sp.betaln_p, [positive, other], dtypes=narrow, oracle=exact.betaln),
    Sample(
        sp.betaln_p,
        [np.array([0.0, inf, 1.0, nan]), np.array([1.0, 1.0, inf, 1.0])],
        name="limits",
        diff=(),
        expected=[inf, -inf, -inf, nan],
    ),
    Sample(sp.poch_p, [unit, other], dtypes=["float32"], oracle=exact.poch),
    Sample(sp.poch_p, [np.array([-2.0]), np.array([nan])], diff=(), expected=[nan]),
    Sample(sp.bessel_jn_p, [x], {"v": 0}, dtypes=narrow, oracle=exact.j0),
    Sample(sp.bessel_jn_p, [x], {"v": 3}, dtypes=narrow, oracle=lambda x: exact.jn(3, x)),
    Sample(sp.sph_harm_y_p, [n, m, positive, other], dtypes=[], oracle=exact.sph_harm_y),
    Sample(sp.sph_harm_y_p, [n, even, np.array([[0, 0.0, 0], [0, 0.7, 2]]), other], dtypes=[]),
    Sample(hyp.hyp1f1_p, [x, other, x.T.reshape(2, 3)], {"orders": (0, 0)}, tol=1e-4),
    Sample(hyp.hyp1f1_p, [x, other, positive], {"orders": (1, 1)}, tol=1e-3, name="mixed"),
    Sample(hyp.hyp1f1_p, [x, other, -positive], {"orders": (1, 2)}, tol=1e-3, name="left"),
    Sample(hyp.hyp2f1_p, [x, other, positive, unit - 0.5], {"orders": (0, 0, 0)}, tol=1e-4),
    Sample(hyp.hyp2f1_p, [unit, other, positive, unit - 0.6], {"orders": (1, 0, 1)}, tol=1e-3),
    Sample(
        hyp.hyp2f1_p,
        [np.array([0.5, 0.5, 0.5, 0.5]), *np.ones((2, 4)), np.array([1.0, 0.9999, nan, -inf])],
        {"orders": (1, 0, 0)},
        name="out of reach",
        diff=(),
        batchable=False,
        expected=[nan, nan, nan, nan],
    ),
]
