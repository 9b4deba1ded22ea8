# Two commands are all a newcomer needs: `make demo` and `make test`. `make help` lists the rest.

PYTHON_BIN := .venv/bin/python
PYTEST := $(PYTHON_BIN) -m pytest
# Another Kubernetes than the pinned one for labs: make lab KUBERNETES=v1.36.3
export LAB_KUBERNETES := $(KUBERNETES)

.PHONY: help setup lab-binaries demo test check unit lab real bench manifests lock clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

setup:  ## Make .venv with the pinned packages
	@scripts/setup

lab-binaries: setup  ## Build etcd, Kubernetes and kwok from Go modules, once
	@$(PYTHON_BIN) -m lab binaries

demo: lab-binaries  ## Show `kubectl edit mpijob` 2→3→1→3 on a real control plane
	@$(PYTHON_BIN) -m lab.demo $(DEMO_ARGS)

test: check lab-binaries  ## Everything that CI runs: lint, types, layers, unit and lab tests
	$(PYTEST) $(PYTEST_ARGS)

check: setup  ## Lint, format, types, layers
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

unit: setup  ## The tests that need no control plane
	$(PYTEST) tests/product tests/modelcheck tests/tooling $(PYTEST_ARGS)

lab: lab-binaries  ## The tests on a real control plane
	$(PYTEST) tests/lab tests/faults $(PYTEST_ARGS)

real: lab-binaries  ## The tests with pods that run; as root, else they are skipped and say why (LAB_KIND=1: on kind)
	@$(if $(LAB_KIND),,scripts/real-node-setup)
	$(PYTEST) tests/real $(PYTEST_ARGS)

bench: lab-binaries  ## Measure; see docs/performance.md
	$(PYTHON_BIN) -m bench all $(BENCH_ARGS)

manifests: lab-binaries  ## Render config/ into the package, as `mpijob-elastic install` applies it
	$(PYTHON_BIN) -m lab.render

lock: setup  ## Write the lock files anew from pyproject.toml
	PATH="$(CURDIR)/.venv/bin:$$PATH" requirements/lock.sh

clean:  ## Remove .venv and caches (built binaries stay in ~/.cache/mpijob-elastic)
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
