# Every task in this repository, as one command each. A fresh machine needs Python 3.11+
# (with venv), Rust and make. Stamps under .venv/ make a second call a no-op until a source changes.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUST   := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)
PACKAGES := evidence plugins/linkwright-networks
RUNS   ?= runs
FUZZ   ?= 600
# Processes of the Python tests: one for each processor; more than eight wait for the slowest file.
JOBS   ?= auto
SEED   ?= 1000000
MUTANTS ?= 1000000
# The flag protocol of `threads` under loom. Its flags apply to the whole build, so it has its own target folder; it
# takes longer to build than to run, so it is not optimised.
LOOM   := RUSTFLAGS="--cfg loom" CARGO_PROFILE_TEST_OPT_LEVEL=0 CARGO_TARGET_DIR=target/loom

export VIRTUAL_ENV := $(abspath $(VENV))
export PATH := $(abspath $(BIN)):$(PATH)

.PHONY: help setup setup-dev setup-metalium dissect test test-slow test-rust test-python fuzz lint format generate bench \
  counts first-contact pictures play docs wheel setup-wheel wheel-check sdist lock audit clean

help: ## what each target does
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

setup: $(VENV)/.built ## build linkwright into .venv, with its studies and plug-ins
	@$(BIN)/python -m compileall -q python/linkwright $(PACKAGES)
setup-dev: $(VENV)/.built $(VENV)/.dev ## setup, with the tools that tests and lint need

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "linkwright needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Set PYTHON=." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null \
	  || { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null; } \
	  || { echo "$(PYTHON) has no ensurepip, so no virtual environment can be made: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.deps: requirements.lock $(VENV)/.python
	@echo "setup, 1 of 2: Python packages into $(VENV), less than a minute"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.deps
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

# The Python half is installed in place, so only a change to the Rust half or to the packaging rebuilds.
INSTALL_PACKAGES = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation $(PACKAGES:%=-e %)
$(VENV)/.built: $(RUST) pyproject.toml $(PACKAGES:%=%/pyproject.toml) $(VENV)/.deps
	@echo "setup, 2 of 2: compile linkwright, about five minutes on two cores"
	@$(BIN)/maturin develop --release --locked --quiet --generate-stubs >/dev/null
	@$(INSTALL_PACKAGES)
	@touch $@

# The stub is read from the symbols of a library, which those of wheels lack. An unoptimised one serves, and tests need
# its crates anyway, built without the flags of wheels.
STUB := python/linkwright/_native.pyi
$(STUB): $(RUST) $(VENV)/.deps
	env -u RUSTFLAGS $(BIN)/maturin generate-stubs --locked --quiet --profile dev --out python

# The runtime wants another Python and another NumPy, so it has an environment of its own.
METALIUM ?= .metalium
setup-metalium: ## the runtime of Tenstorrent with a simulator, in METALIUM (needs Python 3.10 or 3.12, METALIUM_PYTHON=)
	python/linkwright/executors/metalium/setup.sh "$(METALIUM)" $(METALIUM_PYTHON)

dissect: setup ## measure this machine and model the Wormhole n150; ends with the path of the report
	$(BIN)/linkwright dissect --on threads,wormhole-n150 --time-budget 90s --runs $(RUNS)

test: test-rust test-python ## all tests: Rust, Python, examples, docs snippets

test-rust:
	cargo test --workspace --locked --no-fail-fast
	$(LOOM) cargo test -p linkwright-exec --lib --locked loom

test-slow: setup-dev ## the tests that take long and are off by default, Rust and Python
	cargo test --workspace --locked --release -- --ignored
	$(PYTEST) -m slow

# Tests of one file share fixtures, so a file stays in one process.
PYTEST := $(BIN)/python -m pytest --numprocesses $(JOBS) --maxprocesses 8 --dist loadfile
test-python: setup-dev
	$(PYTEST)

fuzz: setup-dev ## mutants of every kind of file and command line, FUZZ seconds of work for each, from seed SEED
	LINKWRIGHT_FUZZ_SECONDS=$(FUZZ) LINKWRIGHT_FUZZ_SEED=$(SEED) $(BIN)/python -m pytest -v -s tests/python/test_fuzz.py tests/python/test_host_fuzz.py tests/python/test_network_fuzz.py tests/python/test_hostile_tables.py plugins/linkwright-networks/tests/test_networks.py::test_mutants
	LINKWRIGHT_FAULTS=200 LINKWRIGHT_FUZZ_SEED=$(SEED) $(BIN)/python -m pytest -q tests/python/test_faults.py
	LINKWRIGHT_MUTANTS=$(MUTANTS) LINKWRIGHT_FUZZ_SEED=$(SEED) cargo test --locked --release -p linkwright-schedule --lib of_every_kind
	cargo test --locked --release -p linkwright-plans --lib -- --include-ignored mutants fuzz
	LINKWRIGHT_MUTANTS=$(MUTANTS) cargo test --locked --release -p linkwright-schedule --test text_fuzz
	LINKWRIGHT_MUTANTS=$(MUTANTS) cargo test --locked --release -p linkwright-sim --test machine_fuzz

lint: setup-dev ## clippy, rustdoc, ruff and mypy without warnings, both formatters, licences
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
	$(BIN)/ruff check .
	$(BIN)/mypy
	cargo fmt --all -- --check
	$(BIN)/ruff format --check .
	$(BIN)/python tests/python/licences.py
	.ci/audit

audit: ## known vulnerabilities of what is pinned (needs pip-audit, cargo-deny and a network)
	.ci/audit

format: setup-dev ## format Rust and Python
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix --quiet .

generate: setup-dev ## write generated files again: golden texts, tables in documents
	$(BIN)/python tests/python/regenerate.py
	$(BIN)/python tests/python/report/pages.py

counts: ## instructions of the simulator's stages against the table in benches/ (needs valgrind)
	$(PYTHON) benches/instructions.py

bench: setup counts ## all that is measured, next to its peers (BENCH=--record keeps the ratios, BENCH=--quick only tries it)
	$(MAKE) wheel wheel-check WHEEL_TARGETS=x86_64-unknown-linux-gnu
	for bench in allreduce_vs_mpi ping_pong_vs_mpi mpi_allreduce_vs_native memory_vs_peers simulators; do \
	    $(BIN)/python benches/$$bench.py $(BENCH) || exit; done

first-contact: setup ## what a GPU that is new to the project can do: results in first-contact/, eight minutes (needs an NVIDIA GPU)
	PYTHON=$(BIN)/python benches/first_contact.sh

pictures: setup-dev ## take the pictures of README.md again (needs chromium), about two minutes
	$(BIN)/python benches/pictures.py

LOCK := uv pip compile pyproject.toml --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11
lock: ## pin the dependencies of pyproject.toml again, keeping versions that still fit (needs uv)
	$(LOCK) --extra build -o requirements.lock
	$(LOCK) --extra dev --extra compute --extra build -o requirements-dev.lock
	$(LOCK) --extra docs -o requirements-docs.lock
	$(LOCK) --extra release -o requirements-release.lock

$(VENV)/.docs: requirements-docs.lock $(VENV)/.deps
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	@touch $@

# The engine for browsers, half a minute on two cores: the crates below the binding. Cargo knows what has changed.
# Without its target, which rustup brings, the site and the wheel lack the playground and say so.
ENGINE := python/linkwright/show/playground/engine.wasm
WASM   := wasm32-unknown-unknown
REMAP  := --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo
.PHONY: $(ENGINE)
$(ENGINE):
	@if rustc --print target-libdir --target $(WASM) | xargs -I{} test -d {} || rustup target add $(WASM); then \
	  RUSTFLAGS="$(REMAP)" cargo build --locked --quiet --profile web --target $(WASM) -p linkwright-web \
	    && cp target/$(WASM)/web/linkwright_web.wasm $@; \
	else echo "no playground: rustup cannot add $(WASM)" >&2; fi

play: setup $(ENGINE) ## the playground, the engine in one page that works offline: playground.html
	$(BIN)/linkwright play --out playground.html

docs: setup $(VENV)/.docs $(ENGINE) ## the documentation site in target/site, strictly: no dead link, no page that nothing leads to
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

# The oldest login nodes that still get updates (RHEL 8) have GLIBC 2.28; Zig can link against any version.
WHEEL_TARGETS ?= x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu

$(VENV)/.release: requirements-release.lock $(VENV)/.python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-release.lock
	@touch $@

# Messages of the library name the source files of crates. Removing the folder of those files makes the wheel
# reproducible: the same sources give the same wheel wherever it is built.
WHEEL := --locked --strip --zig --compatibility manylinux_2_28
wheel setup-wheel: export RUSTFLAGS = $(REMAP)
wheel: $(STUB) $(ENGINE) $(VENV)/.release ## wheels in dist/, which need no compiler: x86-64, ARM (rustup brings that target), studies, plug-ins
	@for target in $(WHEEL_TARGETS); do \
	  rustc --print target-libdir --target $$target | xargs -I{} test -d {} || rustup target add $$target || exit 1; \
	  $(BIN)/maturin build --release $(WHEEL) --target $$target --out dist || exit 1; \
	done
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation --wheel-dir dist $(PACKAGES:%=./%)

# Continuous integration compiles once: it packs the library that it installed in place into the wheel.
setup-wheel: $(STUB) $(VENV)/.dev $(VENV)/.release ## setup-dev with the library of the x86-64 wheel
	MATURIN_PEP517_ARGS="$(WHEEL) --target x86_64-unknown-linux-gnu" $(BIN)/python -m pip install --quiet \
	  --disable-pip-version-check --no-build-isolation --no-deps --editable .
	$(INSTALL_PACKAGES)
	@touch $(VENV)/.built
	@$(MAKE) setup-dev

wheel-check: ## install the wheels of dist/ into an empty environment without Rust, and use them
	.ci/wheel

sdist: $(STUB) $(VENV)/.release ## the source distributions of all packages in dist/
	$(BIN)/maturin sdist --out dist
	for package in $(PACKAGES); do (cd $$package && $(abspath $(BIN))/python -c "from flit_core import buildapi; buildapi.build_sdist('$(abspath dist)')") || exit 1; done

clean: ## remove what setup and cargo made
	rm -rf $(VENV)
	cargo clean
