"""Special functions, element by element, under SciPy's names.

Example:
    >>> import namoo.scipy.special as special
    >>> special.erf(0.0)
    Array(0., dtype=float32, weak_type=True)
"""

from namoo._base.source_context import make_entry_points as _guard
from namoo.scipy.special.entropies import (
    boxcox,
    boxcox1p,
    entr,
    expit,
    kl_div,
    log_softmax,
    logit,
    logsumexp,
    rel_entr,
    softmax,
    xlog1py,
    xlogy,
)
from namoo.scipy.special.functions import bessel_jn, hyp1f1, hyp2f1, i0, i0e, i1, i1e, sph_harm_y
from namoo.scipy.special.gammas import (
    bernoulli,
    beta,
    betainc,
    betaln,
    comb,
    digamma,
    factorial,
    gamma,
    gammainc,
    gammaincc,
    gammaln,
    gammasgn,
    loggamma,
    multigammaln,
    poch,
    polygamma,
    zeta,
)
from namoo.scipy.special.integrals import exp1, expi, expn, fresnel, sici, spence
from namoo.scipy.special.legendre import lpmn, lpmn_values
from namoo.scipy.special.normal import (
    dawsn,
    erf,
    erfc,
    erfcx,
    erfinv,
    log_ndtr,
    ndtr,
    ndtri,
    owens_t,
    wofz,
)

__all__ = [
    "bernoulli",
    "bessel_jn",
    "beta",
    "betainc",
    "betaln",
    "boxcox",
    "boxcox1p",
    "comb",
    "dawsn",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp1",
    "expi",
    "expit",
    "expn",
    "factorial",
    "fresnel",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
    "hyp1f1",
    "hyp2f1",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "kl_div",
    "log_ndtr",
    "log_softmax",
    "loggamma",
    "logit",
    "logsumexp",
    "lpmn",
    "lpmn_values",
    "multigammaln",
    "ndtr",
    "ndtri",
    "owens_t",
    "poch",
    "polygamma",
    "rel_entr",
    "sici",
    "softmax",
    "spence",
    "sph_harm_y",
    "wofz",
    "xlog1py",
    "xlogy",
    "zeta",
]
__dir__ = __all__.copy


_guard(globals())
