"""Functions, programs, models and checkpoints in other processes: pickle, cloudpickle, joblib."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import nn, optim

SCRIPTS = Path(__file__).parents[1] / "support"


@namoo.jit
def compiled(x):
    return jnp.sin(x) * 2.0


@namoo.custom_jvp
def doubled(x):
    return x * 2.0


def run(*command):
    # One thread for each process: several of them share the machine.
    environment = os.environ | {"NAMOO_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_functions_of_the_main_module_do_the_same_in_another_process(tmp_path):
    path = str(tmp_path / "functions")
    run(SCRIPTS / "main_functions.py", "save", path)
    assert "Compiled" in run(SCRIPTS / "main_functions.py", "load", path)


def test_scikit_learn_searches_parameters_of_an_estimator_in_two_processes():
    assert run(SCRIPTS / "main_estimator.py") == "equal\n"


@pytest.mark.parametrize("thing", [compiled, doubled, namoo.lax.sin_p, namoo.config, namoo])
@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_what_a_module_has_is_pickled_by_name(thing, pickler):
    assert pickle.loads(pickler.dumps(thing)) is thing


def test_a_program_keeps_lines_and_operations():
    program = namoo.make_jaxpr(lambda x: compiled(x) + 1.0)(1.0)
    found = pickle.loads(pickle.dumps(program))
    assert str(found) == str(program)
    for own, other in zip(program.eqns, found.eqns, strict=True):
        assert other.primitive is own.primitive and str(other.source) == str(own.source)


def test_an_array_is_read_in_the_types_of_the_reader():
    with namoo.enable_x64(True):
        data = pickle.dumps(namoo.numpy.asarray([1.0, 2.0], "float64"))
        assert pickle.loads(data).dtype == "float64"
    assert pickle.loads(data).dtype == "float32"


def test_a_traced_value_is_not_pickled():
    with pytest.raises(namoo.errors.ConcretizationTypeError, match="can be pickled"):
        namoo.jit(lambda x: pickle.dumps(x))(1.0)


def test_a_compiled_program_is_pickled_without_its_arguments():
    large = namoo.jit(lambda x, name: x.sum()).lower(np.ones(100_000, np.float32), "a").compile()
    data = cloudpickle.dumps(large)
    assert len(data) < 50_000
    assert float(pickle.loads(data)(np.ones(100_000, np.float32), "a")) == 100_000


def test_own_layers_come_back_where_nothing_was_imported(tmp_path):
    keys = namoo.random.split(namoo.random.key(0), 4)
    params = {"w": jnp.ones(2)}
    saved = {
        "linear": nn.Linear(2, 3, key=keys[0]),
        "mlp": nn.MLP(2, 1, 4, 1, key=keys[1]),
        "norm": nn.LayerNorm(3),
        "state": optim.adamw(1e-3).init(params),
    }
    path = str(tmp_path / "checkpoint")
    namoo.checkpoints.save(path, saved)
    code = f"from namoo import checkpoints; print(checkpoints.load({path!r}))"
    assert run("-c", code) == f"{saved}\n"
