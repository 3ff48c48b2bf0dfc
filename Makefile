PYTHON ?= python3
BIN := .venv/bin

# Two test processes for two cores; a BLAS that starts threads of its own beside them only slows both.
# A file is tested by one of them: many files ask JAX for all of their expected values at once.  They
# come in the order of their names, with the small ones, the examples in docstrings, at the end.
WORKERS ?= 2
DISTRIBUTION := --dist loadfile --no-loadscope-reorder
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 JAX_PLATFORMS=cpu

.PHONY: demo test bench lint format clean

# The network's matrices are small: a BLAS that wakes a second thread for each of them only waits.
demo: .venv/installed-examples
	OPENBLAS_NUM_THREADS=1 $(BIN)/python examples/mnist_mlp.py

test: .venv/installed-test lint
	$(TEST_ENV) $(BIN)/python -m pytest -q -n $(WORKERS) $(DISTRIBUTION)

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

# The tests of the C++ part, in a build that watches memory and undefined behaviour. Python itself
# leaves some memory behind at exit, so leaks are counted by the tests instead.
sanitize: .venv/installed-test
	$(BIN)/python -m pip install --quiet scikit-build-core nanobind
	cmake -S runtime -B build/sanitize -DNAMOO_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug \
	  -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python
	cmake --build build/sanitize --parallel 2
	$(TEST_ENV) PYTHONPATH=runtime/sanitize PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 \
	  LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  $(BIN)/python -m pytest -q -p no:cacheprovider tests/test_runtime*.py

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
	find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv .venv

# One stamp for each set of extras: pip runs again only when pyproject.toml or the C++ is newer.
# Python compiles a module when it is first imported; all of them at once would take longer.
.venv/installed-%: pyproject.toml runtime/CMakeLists.txt $(wildcard runtime/src/*) | $(BIN)/python
	PIP_COMPILE=0 $(BIN)/python -m pip install --quiet --editable '.[$*]'
	touch $@
