# Everything sets itself up: a virtual environment in .venv from the lock file, and the extension in
# release mode. What is up to date is not done again.

PYTHON ?= python3
UV_VERSION := 0.13.8
BIN := .venv/bin
# Python's tests side by side: each process imports PyTorch for itself, so that many do not pay.
SIDE_BY_SIDE := --numprocesses logical --maxprocesses 4 --dist worksteal
PYTHON_SOURCES := python tests tools examples fuzz docs/conf.py docs/_extensions
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock

# What Python compiles is kept: PyTorch is imported in a third of the time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo deny docs fuzz test test-gpu gpu-tests bench-gpu test-rust test-python test-long check format bench bench-models wheel riscv-programs clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: setup ## classify handwritten digits privately, three parties on this machine
	$(BIN)/tacit demo

docs: setup ## the pages of docs/ as a site, in target/docs
	VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv sync --active --frozen --inexact --no-install-project --group docs --quiet
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet docs target/docs
	@echo "open target/docs/index.html"

bench: setup ## measure the protocols between processes
	$(BIN)/tacit bench

bench-models: setup ## measure the largest models
	$(BIN)/tacit bench --only models

# Both at once: parties that wait for each other, and for timeouts, leave a processor idle. Rust tells when it ended.
test: setup ## all tests but the long ones
	$(MAKE) --jobs=2 test-rust test-python

test-rust: setup
	@echo "cargo test: told of when it has ended"
	@MAKEFLAGS= TACIT_NVRTC=$(NVRTC) cargo test --workspace --exclude tacit-core --quiet > target/rust-tests.txt 2>&1; \
	status=$$?; cat target/rust-tests.txt; exit $$status

# The folder with NVRTC, which compiles kernels without a card; empty where PyTorch's wheel does not bring it.
NVRTC = $(firstword $(dir $(wildcard $(CURDIR)/.venv/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.*)))

# Each says in a sentence that it was skipped, where there is no card; with TACIT_REQUIRE_GPU=1 it fails.
test-gpu: gpu-tests ## the tests that need a card
	$(BIN)/python tools/gpu_tests.py run

# What test-gpu runs, for a machine with a card and without Rust: this folder's files, python/ and target/gpu-tests.
gpu-tests: setup
	$(BIN)/python tools/gpu_tests.py build

bench-gpu: setup ## measure parties with a card and without; goes on where the last call ended
	$(BIN)/python -m tacit.bench.cards

test-python: setup
	$(BIN)/pytest -q $(SIDE_BY_SIDE)

test-long: setup ## all tests
	cargo test --workspace --exclude tacit-core --quiet -- --include-ignored
	$(BIN)/pytest -q -m ''

check: setup ## formatting, lints, types, layers, licences, and words that are not used any more
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff format --check $(PYTHON_SOURCES)
	$(BIN)/ruff check $(PYTHON_SOURCES)
	$(BIN)/mypy
	$(BIN)/python tools/check_layers.py
	$(BIN)/python tools/check_words.py
	$(BIN)/python tools/check_licences.py
	$(BIN)/python tools/check_kernels.py

RISCV := riscv64-linux-gnu-gcc -O2 -static -nostdlib -ffreestanding -Wl,--build-id=none -Wl,-z,noexecstack
PROGRAMS := crates/riscv/programs
# Functions alone: those with floats have D, one has its lines.
FUNCTIONS := arrays arrays_of_floats choices figures figures_of_floats floats tables vectors
# Programs with main and files, on the runtime; with lines, by which a place in a program is named. The ends of loops
# are not copied, so that the sides of a branch meet again before them. One is compiled as others' programs are.
WHOLE := $(filter-out $(FUNCTIONS),$(basename $(notdir $(wildcard $(PROGRAMS)/*.c))))

riscv-programs: ## compile the programs of crates/riscv anew, with gcc for riscv64
	for name in $(FUNCTIONS); do \
		case $$name in figures_of_floats) of="rv64gc_zba_zbb_zbs -mabi=lp64d -fno-math-errno -Wl,--no-relax -g1 \
			-ffile-prefix-map=$(CURDIR)=.";; \
		*floats) of="rv64gc_zba_zbb_zbs -mabi=lp64d -fno-math-errno -Wl,--no-relax";; \
		figures|vectors) of="rv64gcv -mabi=lp64d -Wl,--no-relax";; \
		choices) of="rv64imac_zba_zbb_zbs -mabi=lp64 -g1 -ffile-prefix-map=$(CURDIR)=.";; \
		tables) of="rv64imac_zba_zbb_zbs -mabi=lp64 -Wl,--no-relax";; \
		*) of="rv64imac_zba_zbb_zbs -mabi=lp64";; esac; \
		$(RISCV) -march=$$of $(PROGRAMS)/$$name.c -o $(PROGRAMS)/$$name.elf || exit 1; done
	for name in $(WHOLE); do case $$name in texts|ordinary) of=-fhosted;; *) of=;; esac; \
		$(RISCV) $$of -fno-reorder-blocks -g1 -ffile-prefix-map=$(CURDIR)=. -isystem $(PROGRAMS)/runtime \
		-ffunction-sections -fdata-sections -march=rv64gc_zba_zbb_zbs -mabi=lp64d -Wl,--gc-sections \
		$(PROGRAMS)/$$name.c $(PROGRAMS)/runtime/*.c -lgcc -o $(PROGRAMS)/$$name.elf || exit 1; done
	chmod 644 $(PROGRAMS)/*.elf

# On Linux zig stands for the linker and the C library, so that the wheels need no newer one than glibc 2.28, whatever
# this machine has. That of the other processor is made where Rust has its target:
# rustup target add aarch64-unknown-linux-gnu
DIST ?= dist
wheel: setup ## wheels in dist: on Linux manylinux_2_28 of x86-64 and arm64, elsewhere this machine's
	VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv sync --active --frozen --inexact --no-install-project --group wheel --quiet
	@if test "$$(uname -s)" != Linux; then $(BIN)/maturin build --release --locked --out $(DIST); exit; fi; \
	for target in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu; do \
		test -d "$$(rustc --print target-libdir --target $$target)" || \
			{ echo "no wheel of $$target: rustup target add $$target"; continue; }; \
		PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin build --release --locked --compatibility manylinux_2_28 --zig \
			--target $$target --out $(DIST) || exit 1; done

format: setup ## format all sources
	cargo fmt --all
	cargo fmt --manifest-path fuzz/Cargo.toml
	$(BIN)/ruff format $(PYTHON_SOURCES)
	$(BIN)/ruff check --fix $(PYTHON_SOURCES)

setup: .venv/.built ## the environment and the extension, without running anything

setup-dev: .venv/.built-dev ## the same, with an extension that is built sooner and runs slower, for work on Rust

deny: ## licences, advisories and sources of Rust's dependencies, by cargo-deny
	cargo deny check

# Seconds for each target.
SECONDS := 60
# Coverage as libFuzzer reads it. Stable Rust has it; sanitizers need `cargo +nightly fuzz`.
COVERAGE := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing
# A name keeps build scripts and procedural macros free of these flags.
HOST = $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')

fuzz: setup ## fuzz every decoder: SECONDS=60 for each target, TARGETS="frames onnx" for some
	cd fuzz && cargo run --quiet --example seeds
	cd fuzz && RUSTFLAGS="$(COVERAGE)" cargo build --quiet --release --target $(HOST) --bins
	for target in $(filter-out $(DECODERS),$(TARGETS)); do mkdir -p fuzz/artifacts/$$target; \
		fuzz/target/$(HOST)/release/$$target -max_total_time=$(SECONDS) -timeout=20 -print_final_stats=1 \
		-artifact_prefix=fuzz/artifacts/$$target/ fuzz/corpus/$$target || exit 1; done
	for target in $(filter $(DECODERS),$(TARGETS)); do \
		$(BIN)/python fuzz/decoders.py $$target --seconds $(SECONDS) || exit 1; done

# Those of Python, in fuzz/decoders.py.
DECODERS := onnx compiled checkpoints federations services descriptions notices
TARGETS := $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs))) $(DECODERS)

clean: ## remove what was built
	rm -rf .venv target fuzz/target

.venv/.synced: pyproject.toml uv.lock
	@command -v cargo >/dev/null || { echo "cargo was not found: install Rust 1.85 or later, https://rustup.rs"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is older than 3.11: make PYTHON=python3.12, for example"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv sync --active --frozen --inexact --no-install-project --quiet
	@touch $@

.venv/.built: .venv/.synced $(RUST_SOURCES)
	VIRTUAL_ENV=$(CURDIR)/.venv PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin develop --release --uv --quiet
	@rm -f .venv/.built-dev
	@touch $@

# One extension is in place at a time: each build makes the other one due.
.venv/.built-dev: .venv/.synced $(RUST_SOURCES)
	VIRTUAL_ENV=$(CURDIR)/.venv PATH="$(CURDIR)/$(BIN):$$PATH" CARGO_INCREMENTAL=1 \
		$(BIN)/maturin develop --profile dev-python --uv --quiet
	@rm -f .venv/.built
	@touch $@
