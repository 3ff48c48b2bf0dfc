"""A scikit-learn estimator written with namoo in `__main__`, searched over by two processes."""

import os
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import GridSearchCV

import namoo
import namoo.numpy as jnp
from namoo import nn, optim


@namoo.jit
def loss(model, x, y):
    return jnp.mean((namoo.vmap(model)(x)[:, 0] - y) ** 2)


class Regressor(BaseEstimator, RegressorMixin):
    """Regression by a small network."""

    def __init__(self, width=4, rate=0.1, steps=60):
        self.width, self.rate, self.steps = width, rate, steps

    def fit(self, x, y):
        model = nn.MLP(x.shape[1], 1, self.width, 1, key=namoo.random.key(0))
        optimizer = optim.adam(self.rate)

        @namoo.jit
        def step(model, state):
            updates, state = optimizer.update(namoo.grad(loss)(model, x, y), state, model)
            return optim.apply_updates(model, updates), state

        state = optimizer.init(model)
        for _ in range(self.steps):
            model, state = step(model, state)
        self.model_, self.step_, self.process_ = model, step, os.getpid()
        return self

    def predict(self, x):
        return np.asarray(namoo.vmap(self.model_)(x)[:, 0])


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x = rng.normal(size=(48, 2)).astype(np.float32)
    y = x @ np.array([1.0, -2.0], np.float32)
    grid = {"rate": [1e-6, 0.1]}
    alone = GridSearchCV(Regressor(), grid, cv=2).fit(x, y)
    search = GridSearchCV(Regressor(), grid, cv=2, n_jobs=2).fit(x, y)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"]
    )
    assert search.best_params_["rate"] == 0.1
    # A fitted estimator, with its compiled step, goes to other processes and comes back.
    fitted: Any = Parallel(n_jobs=2)(delayed(Regressor(width).fit)(x, y) for width in (2, 4))
    assert all(estimator.process_ != os.getpid() for estimator in fitted)
    np.testing.assert_array_equal(fitted[1].predict(x), Regressor(4).fit(x, y).predict(x))
    print("equal")
