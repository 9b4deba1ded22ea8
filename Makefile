# Two commands are all a newcomer needs: `make demo` and `make test`. `make help` lists the rest.

PYTHON_BIN := .venv/bin/python
PYTEST := $(PYTHON_BIN) -m pytest
CHECK := .venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/lint-imports
UNITS := tests/product tests/modelcheck
SLOWEST := --durations=15
# Runs commands beside one another and shows their output one after the other.
BESIDE := $(PYTHON_BIN) scripts/beside.py
# What builds the site, in an environment of its own.
SITE := .venv/site
# Another Kubernetes than the pinned one for labs: make lab KUBERNETES=v1.36.3
export LAB_KUBERNETES := $(KUBERNETES)

.PHONY: help setup lab-binaries demo test test-all rest check unit lab matrix campaign real test-peers bench image release docs manifests lock clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

setup:  ## Make .venv with the pinned packages
	@scripts/setup

lab-binaries: setup  ## Build etcd, Kubernetes, kwok and mpi-operator from Go modules, once
	@$(PYTHON_BIN) -m lab binaries

demo: lab-binaries  ## Show `kubectl edit mpijob` 2→3→1→3 and `kubectl scale` on a real control plane
	@$(PYTHON_BIN) -m lab.demo $(DEMO_ARGS)

test: lab-binaries  ## Tell within ten minutes whether the product works: lint, types, layers, units, main paths
	@$(BESIDE) \
	  compute='$(CHECK) && $(PYTEST) $(UNITS) -m "not thorough" $(SLOWEST)' \
	  lab='$(PYTEST) tests/lab -m "not thorough" $(SLOWEST)'

test-all: test rest  ## What `make test` runs, then everything else but `make real`; what CI runs

rest: lab-binaries docs  ## What `make test` leaves out: long searches, rare paths, tests of lab/ and bench/, peers that are built, the site
	@$(BESIDE) \
	  compute='HYPOTHESIS_PROFILE=thorough $(PYTEST) $(UNITS) tests/tooling -m "thorough or hypothesis" $(SLOWEST) \
	    && $(PYTEST) tests/peers $(SLOWEST)' \
	  lab='$(PYTEST) tests/lab -m thorough $(SLOWEST)'

check: setup  ## Lint, format, types, layers
	$(CHECK)

unit: setup  ## The tests of the product that need no control plane
	$(PYTEST) $(UNITS) -m "not thorough" $(PYTEST_ARGS)

lab: lab-binaries  ## All tests of the product on a real control plane
	$(PYTEST) tests/lab $(PYTEST_ARGS)

matrix: setup  ## A part of the lab tests on several versions of Kubernetes (KUBERNETES="v1.30.14 v1.36.3")
	$(PYTHON_BIN) scripts/matrix.py $(KUBERNETES)

campaign: lab-binaries  ## Search for hours for what breaks the product (CAMPAIGN_ARGS="hostile-objects --seed 7 --minutes 5")
	$(PYTHON_BIN) -m tests.campaign $(CAMPAIGN_ARGS)

real: lab-binaries  ## The tests with pods that run; as root, else they are skipped and say why (LAB_KIND=1: on kind)
	@$(if $(LAB_KIND),,scripts/real-node-setup)
	$(PYTEST) tests/real $(PYTEST_ARGS)

test-peers: lab-binaries  ## Build Helm, prometheus-adapter, KEDA, cert-manager, metrics-server, Kueue, Volcano, Coscheduling, Koordinator and karmadactl, install Prometheus (Debian, Ubuntu; as root), once, and test beside them
	@scripts/peers-setup
	@$(PYTHON_BIN) -m lab peers
	$(PYTEST) tests/peers $(PYTEST_ARGS)

bench: lab-binaries  ## Measure; see docs/records/performance.md
	$(PYTHON_BIN) -m bench all $(BENCH_ARGS)

image: setup  ## Build the image into dist/, without Docker and without root (Debian, Ubuntu)
	$(PYTHON_BIN) -m lab.images.product

release: image  ## Build wheel, image, chart, kubectl plugin and checksums into dist/ (RELEASE_URL: where they will be)
	$(PYTHON_BIN) -m lab.release $(RELEASE_URL)

docs: $(SITE)/made  ## Build docs/ as a site into dist/site; broken links and headings fail
	@$(PYTHON_BIN) -m scripts.commands_page
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build  # with --quiet it would not count warnings
	@! grep -rE '<(script|link|img)[^>]+(src|href)="?(https?:)?//' dist/site --include=*.html  # nothing is loaded from elsewhere

$(SITE)/made: requirements/docs.txt | setup
	@.venv/bin/uv venv --quiet --clear --python $(PYTHON_BIN) $(SITE)
	@.venv/bin/uv pip sync --quiet --python $(SITE) --require-hashes requirements/docs.txt
	@touch $@

manifests: lab-binaries  ## Write the dashboard, and render config/ into the package, as `mpijob-elastic install` applies it, and into the chart
	$(PYTHON_BIN) -m lab.render

lock: setup  ## Write the lock files again from pyproject.toml
	PATH="$(CURDIR)/.venv/bin:$$PATH" requirements/lock.sh

clean:  ## Remove .venv and caches (built binaries stay in ~/.cache/mpijob-elastic)
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
