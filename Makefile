# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# `make demo` and `make test` do everything on a fresh machine: Linux, Python >= 3.10 (PYTHON=... names one), a C++17
# compiler. Whatever else is needed comes from PyPI into .venv.

PYTHON ?= python3
JOBS ?= $(shell nproc)
BUILD ?= build
VENV := .venv
BIN := $(VENV)/bin
TORCH := $(shell sed -n 's/^ *"\(torch==[0-9.]*\)".*/\1/p' pyproject.toml)
CXX_SOURCES = $(shell git ls-files 'dialects/*.h' 'dialects/*.cpp' 'lib/*.h' 'lib/*.cpp' 'lib/*.c' 'python/*.h' 'python/*.cpp' 'test/*.c' 'test/*.cpp')

export PATH := $(abspath $(BIN)):$(PATH)

.PHONY: help demo test build docs format lint bench clean
.DEFAULT_GOAL := help

help: ## This list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

demo: build ## GPT-2 on four virtual devices, compared with PyTorch
	$(BIN)/python -m hyperparallel.cli.demo

test: build $(VENV)/headers ## Everything: build, format, types, tests
	$(MAKE) --no-print-directory check-format
	$(BIN)/ninja -C $(BUILD) -t missingdeps >/dev/null
	$(BIN)/python -m pytest --numprocesses $(JOBS) --maxprocesses 4 --dist loadgroup --no-loadscope-reorder

# Vendors' headers, for the tests of our prototypes; without a network these are skipped.
$(VENV)/headers: $(VENV)/ready test/Runtime/vendor/fetch_headers.py
	$(BIN)/python test/Runtime/vendor/fetch_headers.py $@

build: $(VENV)/ready ## The virtual environment and the compiled parts
	$(BIN)/cmake -S . -B $(BUILD) -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release \
	  -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DPython_EXECUTABLE=$(abspath $(BIN)/python)
	$(BIN)/ninja -C $(BUILD) -j $(JOBS)

docs: build ## docs/reference from ODS, executed blocks from a run
	$(BIN)/python docs/generate.py

format: $(VENV)/ready ## Format every source
	$(BIN)/clang-format -i $(CXX_SOURCES)
	$(BIN)/ruff format --quiet .
	$(BIN)/ruff check --quiet --fix .

check-format: $(VENV)/ready
	$(BIN)/clang-format --dry-run --Werror $(CXX_SOURCES)
	$(BIN)/ruff format --quiet --check .
	$(BIN)/ruff check --quiet .

lint: build check-format ## Formats, types, each source compiled alone, clang-tidy
	$(BIN)/basedpyright
	$(BIN)/cmake -S . -B $(BUILD)/separate -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release \
	  -DHYPERPARALLEL_UNITY=OFF -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DPython_EXECUTABLE=$(abspath $(BIN)/python)
	$(BIN)/ninja -C $(BUILD)/separate -j $(JOBS) hp-objects hp_device
	git ls-files 'dialects/*.cpp' 'lib/*.cpp' | xargs -P $(JOBS) -n 4 \
	  $(BIN)/clang-tidy -p $(BUILD)/separate --quiet --warnings-as-errors='*'

bench: build ## The benchmarks, as JSON lines
	$(BIN)/python benchmarks/cpu_inference.py --json
	$(BIN)/python benchmarks/compile_scale.py --model llama-405b --devices 1024 --json
	$(BIN)/python benchmarks/simulator_validation.py --json
	$(BIN)/python benchmarks/offload_execution.py --json

clean: ## Remove what was built, keep the virtual environment
	rm -rf $(BUILD) python/hyperparallel/bin python/hyperparallel/*.so python/hyperparallel/dialects/*_gen.py

# torch goes first and alone, so that nothing asks for another build of it.
$(VENV)/ready: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet "$(TORCH)"
	$(BIN)/python -m pip install --quiet --group build
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[torch,dev]"
	touch $@
