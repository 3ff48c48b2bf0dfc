PYTHON ?= python3
BIN := .venv/bin

# Two test processes for two cores; a BLAS that starts threads of its own beside them only slows both.
WORKERS ?= 2
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 JAX_PLATFORMS=cpu

.PHONY: demo test bench lint format clean

# The network's matrices are small: a BLAS that wakes a second thread for each of them only waits.
demo: .venv/installed-examples
	OPENBLAS_NUM_THREADS=1 $(BIN)/python examples/mnist_mlp.py

test: .venv/installed-test lint
	$(TEST_ENV) $(BIN)/python -m pytest -q -n $(WORKERS)

# namoo beside JAX, PyTorch and NumPy; ARGS="--only MLP --k 3" chooses rows and rounds.
bench: .venv/installed-bench
	$(BIN)/python bench/run.py $(ARGS)

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: .venv/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
	find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv .venv

# One stamp for each set of extras: pip runs again only when pyproject.toml is newer.
.venv/installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	touch $@
