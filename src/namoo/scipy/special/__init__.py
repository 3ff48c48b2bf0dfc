"""Special functions, element by element, under SciPy's names.

Example:
    >>> import namoo.scipy.special as special
    >>> special.erf(0.0)
    Array(0., dtype=float32, weak_type=True)
"""

from namoo._base.source_context import make_entry_points as _guard
from namoo.scipy.special.entropies import boxcox as boxcox
from namoo.scipy.special.entropies import boxcox1p as boxcox1p
from namoo.scipy.special.entropies import entr as entr
from namoo.scipy.special.entropies import expit as expit
from namoo.scipy.special.entropies import kl_div as kl_div
from namoo.scipy.special.entropies import log_softmax as log_softmax
from namoo.scipy.special.entropies import logit as logit
from namoo.scipy.special.entropies import logsumexp as logsumexp
from namoo.scipy.special.entropies import rel_entr as rel_entr
from namoo.scipy.special.entropies import softmax as softmax
from namoo.scipy.special.entropies import xlog1py as xlog1py
from namoo.scipy.special.entropies import xlogy as xlogy
from namoo.scipy.special.functions import bessel_jn as bessel_jn
from namoo.scipy.special.functions import hyp1f1 as hyp1f1
from namoo.scipy.special.functions import hyp2f1 as hyp2f1
from namoo.scipy.special.functions import i0 as i0
from namoo.scipy.special.functions import i0e as i0e
from namoo.scipy.special.functions import i1 as i1
from namoo.scipy.special.functions import i1e as i1e
from namoo.scipy.special.functions import sph_harm_y as sph_harm_y
from namoo.scipy.special.gammas import bernoulli as bernoulli
from namoo.scipy.special.gammas import beta as beta
from namoo.scipy.special.gammas import betainc as betainc
from namoo.scipy.special.gammas import betaln as betaln
from namoo.scipy.special.gammas import comb as comb
from namoo.scipy.special.gammas import digamma as digamma
from namoo.scipy.special.gammas import factorial as factorial
from namoo.scipy.special.gammas import gamma as gamma
from namoo.scipy.special.gammas import gammainc as gammainc
from namoo.scipy.special.gammas import gammaincc as gammaincc
from namoo.scipy.special.gammas import gammaln as gammaln
from namoo.scipy.special.gammas import gammasgn as gammasgn
from namoo.scipy.special.gammas import loggamma as loggamma
from namoo.scipy.special.gammas import multigammaln as multigammaln
from namoo.scipy.special.gammas import poch as poch
from namoo.scipy.special.gammas import polygamma as polygamma
from namoo.scipy.special.gammas import zeta as zeta
from namoo.scipy.special.integrals import exp1 as exp1
from namoo.scipy.special.integrals import expi as expi
from namoo.scipy.special.integrals import expn as expn
from namoo.scipy.special.integrals import fresnel as fresnel
from namoo.scipy.special.integrals import sici as sici
from namoo.scipy.special.integrals import spence as spence
from namoo.scipy.special.normal import dawsn as dawsn
from namoo.scipy.special.normal import erf as erf
from namoo.scipy.special.normal import erfc as erfc
from namoo.scipy.special.normal import erfcx as erfcx
from namoo.scipy.special.normal import erfinv as erfinv
from namoo.scipy.special.normal import log_ndtr as log_ndtr
from namoo.scipy.special.normal import ndtr as ndtr
from namoo.scipy.special.normal import ndtri as ndtri
from namoo.scipy.special.normal import owens_t as owens_t
from namoo.scipy.special.normal import wofz as wofz

_guard(globals())
