"""Statistics: a module for each distribution, and summaries of samples.

Example:
    >>> import namoo.scipy.stats as stats
    >>> stats.norm.cdf(0.0)
    Array(0.5, dtype=float32)
"""

from namoo._base.source_context import make_entry_points as _guard
from namoo.scipy.stats import bernoulli as bernoulli
from namoo.scipy.stats import beta as beta
from namoo.scipy.stats import betabinom as betabinom
from namoo.scipy.stats import binom as binom
from namoo.scipy.stats import cauchy as cauchy
from namoo.scipy.stats import chi2 as chi2
from namoo.scipy.stats import dirichlet as dirichlet
from namoo.scipy.stats import expon as expon
from namoo.scipy.stats import gamma as gamma
from namoo.scipy.stats import gennorm as gennorm
from namoo.scipy.stats import geom as geom
from namoo.scipy.stats import gumbel_l as gumbel_l
from namoo.scipy.stats import gumbel_r as gumbel_r
from namoo.scipy.stats import laplace as laplace
from namoo.scipy.stats import logistic as logistic
from namoo.scipy.stats import multinomial as multinomial
from namoo.scipy.stats import multivariate_normal as multivariate_normal
from namoo.scipy.stats import nbinom as nbinom
from namoo.scipy.stats import norm as norm
from namoo.scipy.stats import pareto as pareto
from namoo.scipy.stats import poisson as poisson
from namoo.scipy.stats import t as t
from namoo.scipy.stats import truncnorm as truncnorm
from namoo.scipy.stats import uniform as uniform
from namoo.scipy.stats import vonmises as vonmises
from namoo.scipy.stats import wrapcauchy as wrapcauchy
from namoo.scipy.stats.kde import gaussian_kde as gaussian_kde
from namoo.scipy.stats.summaries import mode as mode
from namoo.scipy.stats.summaries import rankdata as rankdata
from namoo.scipy.stats.summaries import sem as sem

_guard(globals())
