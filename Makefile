PYTHON ?= python3
BIN := .venv/bin

# Two test processes for two cores; a BLAS with threads of its own would slow both of them down. One
# process runs all tests of a file, because many files ask JAX for all of their expected values at
# once. Files run in the order of their names; the short ones, the doctests, come last.
WORKERS ?= 2
DISTRIBUTION := --dist loadfile --no-loadscope-reorder
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 JAX_PLATFORMS=cpu

# What most changes touch; `make check` runs these in less than two minutes on two cores.
CHECKED := tests/project/test_rooms.py tests/project/test_lessons.py tests/tree/test_tree.py \
  tests/tree/test_trees.py tests/tree/test_paths.py tests/tree/test_tree_diff.py \
  tests/core/test_array.py tests/base/test_errors.py tests/base/test_lazy.py tests/api/test_jit.py \
  tests/transforms/test_grad.py tests/transforms/test_vmap.py \
  tests/numpy/test_numpy_elementwise.py tests/models/test_optim.py tests/models/test_module.py \
  tests/models/test_struct.py

.PHONY: demo check test clients platforms bench docs docs-serve docs-test lint format stubs caches-doc sanitize clean

# The network's matrices are too small for BLAS threads to pay off.
demo: .venv/installed-examples
	OPENBLAS_NUM_THREADS=1 $(BIN)/python examples/mnist_mlp.py

# Lint and the tests of what people touch most, for while you work; `make test` runs everything.
check: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/stubs.py --check
	$(TEST_ENV) $(BIN)/python -m pytest -q -n $(WORKERS) $(DISTRIBUTION) $(CHECKED)

test: .venv/installed-test lint
	$(TEST_ENV) $(BIN)/python -m pytest -q -n $(WORKERS) $(DISTRIBUTION)

# Run a part of the tests of libraries written for JAX, with namoo in JAX's place and with JAX, in an
# environment of their own; about 20 minutes. ARGS="--whole optax" runs all tests of one library.
clients: build/clients/installed
	build/clients/bin/python tests/clients/run.py $(ARGS)

build/clients/installed: pyproject.toml
	$(PYTHON) -m venv build/clients
	PIP_COMPILE=0 build/clients/bin/python -m pip install --quiet --editable '.[clients]'
	touch $@

# Run the same programs on the platforms at hand, the browser included, and compare their values;
# ARGS="--python python3.13" adds an interpreter.
platforms: .venv/installed-test
	$(BIN)/python tools/platforms.py $(ARGS)

# Measure namoo beside JAX, PyTorch and NumPy; ARGS="--only MLP --k 3" selects rows and rounds.
bench: .venv/installed-bench
	$(BIN)/python bench/run.py $(ARGS)

# Build the documentation site, English and Korean, into build/docs, in an environment of its own, and
# check it: no dead link, a place for every public name, nothing loaded from another machine.
SPHINX := build/docs-env/bin/python -m sphinx -a -q -W --keep-going -j auto -c docs
docs: build/docs-env/installed docs/browser/node_modules
	build/docs-env/bin/python tools/reference.py docs/api
	$(SPHINX) -d build/docs-cache/en docs build/docs
	$(SPHINX) -d build/docs-cache/ko -D language=ko docs/ko build/docs/ko
	build/docs-env/bin/python tools/cells.py build/docs/notebooks
	node docs/browser/build.mjs build/docs/browser
	build/docs-env/bin/python tools/check_site.py build/docs

docs-serve: docs
	build/docs-env/bin/python -m namoo.lessons --folder build/docs --port 8000

# Run the lessons of the site that `make docs` built in Chromium, as readers do: every cell, every
# exercise. ARGS="--only 09" selects; ARGS="--pictures FOLDER" takes pictures of pages instead.
docs-test: docs/browser/node_modules
	node docs/browser/test.mjs build/docs $(ARGS)

# The scripts of the pages come from npm, by name; nothing of them is kept in the repository.
docs/browser/node_modules: docs/browser/package-lock.json
	npm ci --prefix docs/browser --ignore-scripts --no-audit --no-fund
	touch $@

build/docs-env/installed: pyproject.toml
	$(PYTHON) -m venv build/docs-env
	PIP_COMPILE=0 build/docs-env/bin/python -m pip install --quiet --editable '.[docs]'
	touch $@

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/stubs.py --check
	$(BIN)/pyright

format: .venv/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Write the stubs of the namespaces and the index of the names that modules declare in `__all__`.
stubs: .venv/installed-test
	$(BIN)/python tools/stubs.py

# Write the page that lists all caches, from their declarations in the source.
caches-doc: .venv/installed-test
	$(BIN)/python -m namoo.memo.caches > docs/caches.md

# Run the tests of the C++ part under the address and undefined-behaviour sanitizers. Python itself
# leaks at exit, so the leak sanitizer is off; the tests count leaks themselves.
sanitize: .venv/installed-test
	$(BIN)/python -m pip install --quiet scikit-build-core nanobind
	cmake -S runtime -B build/sanitize -DNAMOO_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug \
	  -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python
	cmake --build build/sanitize --parallel 2
	$(TEST_ENV) PYTHONPATH=runtime/sanitize PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 \
	  LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  $(BIN)/python -m pytest -q -p no:cacheprovider tests/runtime

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
	find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv .venv

# One stamp per set of extras: pip runs again only when pyproject.toml or the C++ code is newer.
# PIP_COMPILE=0: Python compiles a module when it is first imported, which takes less time in all.
.venv/installed-%: pyproject.toml runtime/CMakeLists.txt $(wildcard runtime/src/*) | $(BIN)/python
	PIP_COMPILE=0 $(BIN)/python -m pip install --quiet --editable '.[$*]'
	touch $@
