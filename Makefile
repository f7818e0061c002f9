# Everything a developer or CI runs. `make help` lists the targets.
PYTHON ?= python3
PORT ?= 3000
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# uv installs in seconds what takes pip minutes; an index set for pip holds for it too.
PIP_INDEX := $(shell $(PYTHON) -m pip config get global.index-url 2>/dev/null)
ifneq ($(PIP_INDEX),)
export UV_DEFAULT_INDEX ?= $(PIP_INDEX)
endif
export KB_HOME ?= $(CURDIR)/.kb
# Reading test data is optional outside CI; .ci/run sets it where the data lies beside the clone.
PYTEST_FLAGS ?= -n 2 --dist loadgroup

.PHONY: figures operator-screenshots validate-deploy help install dev system demo up down test sbom docs reference lint types contracts unit format lock unproven clean \
	bench-embed bench-search bench-scan bench-language bench-parse bench-serve bench-watch bench-line \
	bench-start test-long test-faults

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

install: $(VENV)/.installed ## make .venv with the locked dependencies and the command kb

$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] + ". Set PYTHON=…") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r bootstrap.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock \
		|| $(PIP) --require-hashes -r requirements.lock
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

# What only tests need: on top of the above, from a lock that agrees with it.
$(VENV)/.dev: $(VENV)/.installed requirements-dev.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-dev.lock \
		|| $(PIP) --require-hashes -r requirements-dev.lock
	@touch $@

dev: $(VENV)/.dev system ## install besides what the tests need

system: ## the browser and the OCR engine that the tests drive (Debian packages)
	@tools/system-packages

demo: install ## ingest examples/, show every document's end, answer one question per language
	$(BIN)/kb demo

up: install ## Dagster UI on http://127.0.0.1:3000 (PORT=…) with daemon, code server and Postgres
	$(BIN)/python -m kb_assets.up --port $(PORT)

down: install ## stop what `make up` started
	$(BIN)/python -m kb_assets.up --stop

test: lint types contracts unit ## what CI runs

reference: $(VENV)/.dev ## write docs/reference from the code
	$(BIN)/python tools/reference.py
	$(BIN)/python tools/licences.py
	$(BIN)/python -m kb.http.openapi

lint: $(VENV)/.dev
	$(BIN)/python tools/reference.py --check
	$(BIN)/python tools/licences.py --check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

contracts: $(VENV)/.dev
	$(BIN)/lint-imports

unit: dev
	$(BIN)/python -m pytest $(PYTEST_FLAGS) -m "not long" --ignore=tests/e2e/page
	$(BIN)/python -m pytest -m "not long" tests/e2e/page  # apart: the browser's driver keeps an event loop

test-long: dev ## the long forms: fuzz, kill and load runs
	$(BIN)/python -m pytest -m long

test-faults: dev ## the long forms of tests/faults and tests/abuse: kills, full disks, poison
	$(BIN)/python -m pytest -m long tests/faults tests/abuse

format: $(VENV)/.dev ## format and mend what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

unproven: $(VENV)/.dev ## rows of a requirements file that no test proves yet (REQUIREMENTS=path)
	$(BIN)/python tools/unproven.py $(REQUIREMENTS)

figures: install ## draw docs/img/*.svg
	$(BIN)/python tools/figures.py

operator-screenshots: dev ## do an operator's ten tasks in a real Dagster UI, count the clicks, write docs
	$(BIN)/python tools/operator_tasks

# Tools that only a release needs are run from PyPI by their pinned version, not installed.
sbom: install ## CycloneDX list of the locked distributions, in build/sbom.json
	@mkdir -p build
	$(BIN)/uv tool run --quiet --from cyclonedx-bom==7.5.0 cyclonedx-py requirements requirements.lock \
		--pyproject pyproject.toml --output-reproducible --of JSON -o build/sbom.json

validate-deploy: install ## chart, compose file and Dockerfiles by Helm, Kubernetes' schemas and others (VALUES=file)
	$(BIN)/python tools/deployment $(VALUES)

docs: install ## the documentation as a site in build/site; broken links fail
	$(BIN)/uv tool run --quiet --from mkdocs==1.6.1 mkdocs build --strict

COMPILE := $(BIN)/uv pip compile --python-version 3.11 --universal --no-strip-extras \
	--no-emit-index-url --no-annotate --no-header --generate-hashes --quiet

lock: install ## resolve the lock files anew from pyproject.toml
	$(COMPILE) pyproject.toml --extra all --group dev -o requirements-dev.lock
	$(COMPILE) pyproject.toml --extra all -c requirements-dev.lock -o requirements.lock
	$(COMPILE) pyproject.toml --extra serve -c requirements-dev.lock -o requirements-read.lock
	printf 'uv\nsetuptools>=77\n' | $(COMPILE) -c requirements-dev.lock - -o bootstrap.lock

bench-embed: install ## embedding: ours against naive batches, CPU ratios in one run
	$(BIN)/python bench/embed.py

bench-search: install ## ranking quality and CPU per search
	$(BIN)/python bench/search.py

bench-scan: install ## injection scan: caught and false alarms by kind and language
	$(BIN)/python bench/scan.py

bench-language: install ## language detectors side by side
	$(BIN)/python bench/language.py

bench-parse: install ## PDF parsing against ground truth
	$(BIN)/python bench/parse_pdf.py

bench-serve: install ## searching over HTTP: added time, ratio during ingest, 50 searchers
	$(BIN)/python bench/serve.py

bench-watch: install ## one tick over 5,000 watched addresses
	$(BIN)/python -P bench/watch.py

bench-line: install ## what Dagster's events cost over the plain line
	$(BIN)/python bench/dagster_line.py

bench-start: install ## a second ingest against the first, and how fast kb search starts
	$(BIN)/python bench/line.py

clean: ## remove .venv and local data (asks nothing)
	-$(BIN)/kb db stop
	rm -rf $(VENV) .kb
