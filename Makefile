# Every target does all it needs on a fresh machine with Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export HF_HUB_OFFLINE := 1
export TOKENIZERS_PARALLELISM := true
# Without bytecode every test process would rewrite the tests' assertions anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup demo test lint types bench grid clean

setup: $(READY)

# torch first and pinned: a range would take a build with gigabytes of GPU libraries where a CPU build is what there is.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "torch==2.13.0" -c constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]" -c constraints.txt
	touch $(READY)

lint: $(READY)
	$(BIN)/ruff check maskery tests benchmarks
	$(BIN)/ruff format --check maskery tests benchmarks

types: $(READY)
	$(BIN)/mypy

test: lint types
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not grid"

grid: $(READY)
	$(BIN)/python -m pytest -n 2 -m grid
	HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest -n 2 $(wildcard tests/test_fuzz_*.py)

bench: $(READY)
	$(BIN)/python -m benchmarks.corpus
	$(BIN)/python -m benchmarks.pretrain
	$(BIN)/python -m benchmarks.pretrain --same-loss
	$(BIN)/python -m benchmarks.memory
	$(BIN)/python -m benchmarks.shape_speed
	$(BIN)/python -m benchmarks.xlnet_speed
	$(BIN)/python -m benchmarks.xl_evaluation
	$(BIN)/python -m benchmarks.generate
	$(BIN)/python -m benchmarks.scaling
	$(BIN)/python -m benchmarks.masking_correctness
	$(BIN)/python -m benchmarks.permutation_correctness
	$(BIN)/python -m benchmarks.report

demo: $(READY)
	$(BIN)/maskery demo

clean:
	rm -rf $(VENV) build *.egg-info
