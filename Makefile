# make demo    set up and run the main job          make test    set up and run the tests
# make check   format, lint, types, layers          make bench   speed, as ratios
# make mutants plant small bugs and see which the tests catch
# make docs    the documentation as a site, in site/
# make package wheel and source distribution, each installed and used in a bare environment; EXTRAS=all for every extra
# make serve   the decision service with a demonstration under live traffic
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-long crashes bounds fuzz check bench mutants docs package serve format clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "polyarm needs Python 3.11 or newer: set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/polyarm compare heavy-tailed --realizations 20 --seed 0 --out results/demo
	@echo 'Figures and tables: results/demo'

# two workers on two cores: threads of BLAS would only wait for each other; processes that tests start load kept bytecode
test: export OPENBLAS_NUM_THREADS = 1
test: $(READY)
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# what takes too long for every change: run it before a release
test-long: $(READY)
	POLYARM_LONG=1 POLYARM_STREAM_STEPS=1000 $(BIN)/python -m pytest -n 2 tests/contracts/test_streams.py tests/neural/test_regret.py

# replicas, leaders and databases that stop under load: run it after a change of the service
crashes: $(READY)
	POLYARM_CRASHES=1 $(BIN)/python -m pytest tests/service/test_crash.py tests/service/test_machine.py tests/service/test_description.py

BOUNDS := NUMBA_BOUNDSCHECK=1 POLYARM_CACHE_DIR=$(CURDIR)/results/bounds
bounds: $(READY)
	mkdir -p -m 700 results/bounds
	$(BOUNDS) $(BIN)/python -m pytest -n 2 --dist loadfile tests/kernels tests/inference tests/contracts

fuzz: $(READY)
	mkdir -p -m 700 results/bounds
	$(BOUNDS) $(BIN)/python -m benchmarks.fuzz_states 10000

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

serve: $(READY)
	@mkdir -p results
	$(BIN)/polyarm serve --database results/service.db --demo

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo 'Pages: site/index.html'

package: $(READY)
	$(BIN)/python .ci/package $(EXTRAS)

bench: $(READY)
	$(BIN)/polyarm bench

mutants: $(READY)
	$(BIN)/python -m benchmarks.mutants

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
