"""`namoo.random`: random numbers that are functions of a key."""

from namoo._base.lazy import lazy as _lazily

_TABLE = {
    "primitives.random.gamma": "random_gamma_p",
    "random.continuous": (
        "cauchy double_sided_maxwell exponential gumbel laplace logistic lognormal maxwell normal "
        "pareto rayleigh triangular truncated_normal wald weibull_min"
    ),
    "random.counts": "binomial multinomial poisson",
    "random.discrete": "categorical choice geometric permutation",
    "random.gammas": "ball beta chisquare dirichlet f gamma generalized_normal loggamma t",
    "random.keys": "bits clone fold_in key key_data key_dtype key_impl PRNGKey split wrap_key_data",
    "random.multivariate": "multivariate_normal orthogonal",
    "random.uniforms": "bernoulli rademacher randint uniform",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE, guarded=True)
