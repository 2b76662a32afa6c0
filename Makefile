# Everything a person types here works on a fresh clone; what it needs is installed into .venv once.
#
#   make demo     learn, score and report on the bundled sample log
#   make test     unit tests and flows: seven minutes on two cores
#   make test-endurance   kills, damage, browsers, whole commands: ten minutes
#   make test-all both, and what is marked nightly
#   make record   prompts that the recorded run lacks into FOLDER, and replies from there; see examples/recorded
#   make screens  screens of the demo, and the report's picture
#   make figures  figures of README and docs from benchmarks; DATA=FOLDER for those of logs that aren't here
#   make check    format, lint, types, then all tests: what has to pass before a change goes in

SHELL := /bin/sh
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
# Tests start hundreds of commands: modules are compiled once, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help demo test test-endurance test-all check format lint types docs screens figures record lock clean

# The interpreter that .venv is made with: the first one that is new enough, or `make … PYTHON=/path/to/python`.
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11 python; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)

venv := .venv
python := $(venv)/bin/python
pip := $(python) -m pip --disable-pip-version-check --no-input
# Python compiles a module when it is imported first. Most of what is installed is never imported, and compiling all of it takes
# as long as the demo.
as_locked := --quiet --require-hashes --no-deps --no-compile

# A stamp's name says what was installed, so a changed lock installs again and a touched or checked-out one doesn't.
# Entry points and the editable install hold absolute paths: a moved folder counts as a change.
# The demo needs half of what is locked; the stamps of the whole come with those of the half.
checksum = $(shell { pwd -P; cat $(1); } | cksum | tr -s ' \t' -)
of_lock := $(call checksum,requirements.lock)
of_both := $(call checksum,requirements.lock pyproject.toml)
half_locked := $(venv)/half-locked-$(of_lock)
locked := $(venv)/locked-$(of_lock)
half_installed := $(venv)/half-installed-$(of_both)
installed := $(venv)/installed-$(of_both)
FOR_TESTS := \# What tests and tools need besides.

help:
	@sed -n 's/^#   //p' Makefile

demo: $(half_installed)
	$(venv)/bin/pollex demo

pytest = $(python) -m pytest --numprocesses auto --dist worksteal

# What costs no process and no minute; a worker that is done takes over half of what waits at another.
test: $(installed)
	$(pytest) -m 'not nightly' tests/house tests/unit tests/flows $(wildcard tests/rooms/*/unit tests/rooms/*/flows)

# Kills, signals, full disks, damage, what leaves the machine, whole commands on servers, planted worlds; pages in a browser
# and other tools' packages where they are installed.
test-endurance: $(installed)
	$(pytest) -m 'not nightly' -r s tests/endurance $(wildcard tests/rooms/*/endurance)

# Those marked nightly, too, and each property tried on 200 examples.
test-all: $(installed)
	HYPOTHESIS_PROFILE=nightly $(pytest)

check: format lint types test-all

format: $(installed)
	$(venv)/bin/ruff format --check .

lint: $(installed)
	$(venv)/bin/ruff check .

types: $(installed)
	$(python) -m mypy

docs: $(installed)
	$(python) docs/drawings.py

screens: $(installed)
	$(python) docs/screens.py

# What needs data stays as it is without them. `.venv/bin/python docs/figures.py --age` tells how old each file is.
figures: $(installed)
	$(python) docs/figures.py --make $(if $(DATA),--data $(DATA)) $(if $(ONLY),--only $(ONLY))

FOLDER ?= build/record
record: $(installed)
	$(python) docs/record.py $(FOLDER) $(REMEDY)

# Writes requirements.lock anew from what pyproject.toml asks for, in an environment of its own, with the hashes of all files
# of each version; beside those of the registry that of the PyTorch at hand, which may be the build without CUDA.
# What pollex itself needs stands first, and what tests and tools need besides under a line that says so.
# An installation from this folder leaves its copy in build/, and a later one would take files from it that are gone here:
# it is removed.
lock:
	@rm -rf build && $(PYTHON) -m venv build/lock && $(PYTHON) -m venv build/tools
	build/lock/bin/python -m pip install --quiet .
	@build/lock/bin/python -m pip freeze --all --exclude pip --exclude pollex | sed 's/==.*//' > build/own.txt
	build/lock/bin/python -m pip install --quiet '.[dev]'
	@build/tools/bin/python -m pip install --quiet uv
	@build/lock/bin/python -m pip freeze --all --exclude pip --exclude pollex | sed 's/+.*//' > build/pins.txt
	@build/lock/bin/python -m pip download --quiet --no-deps --dest build/torch "$$(grep '^torch==' build/pins.txt)"
	@build/tools/bin/uv pip compile --quiet --no-deps --universal --generate-hashes --no-header --no-annotate \
		--output-file build/hashed.txt build/pins.txt
	@hash=$$(build/lock/bin/python -m pip hash build/torch/* | tail -1) && { sed '/^[^#]/,$$d' requirements.lock; \
		awk -v hash="$$hash" '{ print } /^torch==/ { print "    " hash " \\" }' build/hashed.txt > build/whole.txt; \
		$(parted) own=1 build/own.txt build/whole.txt; printf '\n%s\n\n' '$(FOR_TESTS)'; \
		$(parted) own=0 build/own.txt build/whole.txt; } > build/requirements.lock
	@mv build/requirements.lock requirements.lock && rm -rf build

# Of a lock, the distributions that a list of names has (own=1), or all others (own=0).
parted = awk 'function name(text) { sub(/==.*/, "", text); gsub(/[_.]/, "-", text); return tolower(text) } \
	NR == FNR { of[name($$1)] = 1; next } /^[^ ]/ { shown = (name($$1) in of) == own } shown'

clean:
	rm -rf $(venv) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache

editable = $(pip) install --quiet --no-index --no-deps --no-build-isolation --editable .

$(half_installed): $(half_locked)
	@$(editable)
	@rm -f $(venv)/half-installed-* && touch $@

$(installed): $(locked)
	@$(editable)
	@rm -f $(venv)/installed-* $(venv)/half-installed-* && touch $(half_installed) $@

$(half_locked):
	@$(environment)
	@sed '/^$(FOR_TESTS)/,$$d' requirements.lock > $(venv)/half.txt
	@$(call install,$(venv)/half.txt)
	@rm -f $(venv)/half-locked-* && touch $@

$(locked):
	@$(environment)
	@$(call install,requirements.lock)
	@rm -f $(venv)/locked-* $(venv)/half-locked-* && touch $(half_locked) $@

environment = $(or $(PYTHON),false) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null || { \
		echo "pollex needs Python 3.11 or newer; $(or $(PYTHON),every python on the PATH) is older or missing." \
		"Install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11"; exit 1; } >&2; \
	echo "Installing into $(venv); this happens once and takes some minutes."; \
	$(PYTHON) -m venv $(venv)

# PyTorch comes from a folder at hand where there is one. What `pip check` misses, PyTorch's build for CUDA needs besides.
install = sed -n '/^torch==/,/[^\\]$$/p' requirements.lock > $(venv)/torch.txt; \
	$(pip) install $(as_locked) --no-index --requirement $(venv)/torch.txt 2> /dev/null || true; \
	$(pip) install $(as_locked) --requirement $(1) && \
	sed -n 's/ \\$$//; /^[^\# ].*==/p' $(1) > $(venv)/pins.txt && \
	{ $(pip) check > /dev/null 2>&1 || $(pip) install --quiet --no-compile --requirement $(venv)/pins.txt; }
