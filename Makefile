# The two commands: `make demo` and `make test`. Everything installs itself into .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test references hostile soak wheel setup docs tables bench clean
.DEFAULT_GOAL := demo

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# A stamp per set of extras: installing again only when what is asked for has changed.
$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	@echo "Installing annotruth into $(VENV) (the first time takes a minute or two) ..."
	$(PIP) -e .
	@touch $@

$(VENV)/.installed-%: $(BIN)/python pyproject.toml constraints.txt
	@echo "Installing annotruth and what '$*' needs into $(VENV) (the first time takes a minute or two) ..."
	$(PIP) -e '.[$*]'
	@touch $@

setup: $(VENV)/.installed-test $(VENV)/.installed-docs

demo: $(VENV)/.installed
	$(BIN)/annotruth demo -o runs/demo --overwrite

test: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	@# Types are checked beside the tests, which leave a core idle at times; either fails the target.
	@$(BIN)/mypy & types=$$!; \
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -q; tests=$$?; \
	wait $$types && exit $$tests

# What other programs (datumaro, Label Studio's library, nnU-Net, slicerio …) read and write, held against what we do; in
# an environment of their own, as their pins clash with ours. In "make test" these tests are skipped.
REFERENCES := .venv-references
$(REFERENCES)/.installed: tests/references/requirements.txt pyproject.toml
	$(PYTHON) -m venv $(REFERENCES)
	$(REFERENCES)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/references/requirements.txt
	$(REFERENCES)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

references: $(REFERENCES)/.installed
	ANNOTRUTH_REFERENCES=1 OMP_NUM_THREADS=1 $(REFERENCES)/bin/python -m pytest -q tests/references tests/io/exports \
		tests/io/sources/test_coco.py tests/io/sources/test_dicom.py tests/io/sources/test_slicer.py

# Every bad input there is, to every verb (about ten minutes), and jobs that are killed and go on. Both keep their counts.
hostile: $(VENV)/.installed-test
	$(BIN)/python -W ignore -m tests.hostile --write

MINUTES ?= 12
soak: $(VENV)/.installed-test
	$(BIN)/python -W ignore -m tools.soak --minutes $(MINUTES) --kills 200 --write

# Wheel and source package, installed into empty environments and used from another folder.
wheel: $(VENV)/.installed-test
	$(BIN)/python -m tools.wheel

docs: $(VENV)/.installed-docs
	$(BIN)/mkdocs build --strict

tables: $(VENV)/.installed
	$(BIN)/python -m tools.tables
	$(BIN)/python -m tools.ways

# All of them are run; a target that one misses is told at the end.
BENCHMARKS = folders tables "models speed" "models coverage" loss training modules desk trace identifiability
bench: $(VENV)/.installed-bench
	@missed=0; \
	run() { echo "$$*"; $(BIN)/python -m "$$@" || missed=1; }; \
	run benchmarks $(if $(DATA),--data $(DATA)); \
	$(if $(DATA),run benchmarks.models accuracy --data $(DATA);) \
	run benchmarks.masks $(if $(DATA),--data $(DATA)); \
	for each in $(BENCHMARKS); do run benchmarks.$$each; done; \
	exit $$missed

clean:
	rm -rf $(VENV) $(REFERENCES) build dist site runs .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
