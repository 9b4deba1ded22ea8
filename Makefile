# Two commands are all a newcomer needs: `make demo` and `make test`. `make help` lists the rest. Each target of tests has
# the name of its folder. ARGS is for the program that a target runs: make lab ARGS="-k drain", make demo ARGS=--keep

PYTHON_BIN := .venv/bin/python
PYTEST := $(PYTHON_BIN) -m pytest
CHECK := .venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/codespell && .venv/bin/mypy && .venv/bin/lint-imports
UNITS := tests/product tests/modelcheck tests/driver
# A file is one process's; the longest come first (tests/lab/fixtures.py).
FILES := --dist loadfile --no-loadscope-reorder --durations=15
# Tests of the lab wait much: three processes, each with a control plane of its own, leave part of two cores idle. Lint and
# types, and the units in two processes of lower priority, take what is left; their output is shown when they end.
SPREAD := -n 3 $(FILES)
BESIDE := nice -n 10 $(PYTEST) -n 2 $(FILES)
define shown_at_end
@mkdir -p dist
@( $(2) ) > dist/$(1).txt 2>&1; code=$$?; cat dist/$(1).txt; exit $$code
endef
# The programs of other projects beside which CI tests: they are built, and a missing one fails it.
CI_PEERS := helm helm-v4 kueue volcano-scheduler
# What builds the site, in an environment of its own.
SITE := .venv/site
# What checks the dashboard's page: biome and tsc, and the Node.js that installs them.
PAGE := .venv/page
# Two MPI implementations, whose mpirun starts ranks in tests/driver.
MPI := .venv/open-mpi .venv/mpich
# Compiled modules are kept, whatever the environment says: else each process of the tests compiles them, for 10 s of CPU.
export PYTHONDONTWRITEBYTECODE :=
# Another Kubernetes than the pinned one for labs: make lab KUBERNETES=v1.36.3
export LAB_KUBERNETES := $(KUBERNETES)

.PHONY: help setup lab-binaries demo test test-check test-lab test-units test-all all-lab all-units test-fresh check hooks page-check fmt unit lab matrix long campaign real test-peers bench bench-released image release docs screenshots manifests lock clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

setup:  ## Make .venv with the pinned packages
	@scripts/setup

lab-binaries: setup  ## Build etcd, Kubernetes, kwok and mpi-operator from Go modules, once
	@$(PYTHON_BIN) -m lab binaries

demo: setup  ## Show `kubectl edit mpijob` 2→3→1→3 and `kubectl scale` on a real control plane
	@$(PYTHON_BIN) -m lab.demo $(ARGS)

test: lab-binaries $(MPI:=/made)  ## Tell within nine minutes whether the product works: lint, types, layers, units, main paths on a real control plane
	@$(MAKE) --no-print-directory -j3 test-check test-lab test-units

test-check:
	$(call shown_at_end,check,$(CHECK))

test-lab:
	$(PYTEST) $(SPREAD) tests/lab -m "not thorough and not campaign"

test-units:
	$(call shown_at_end,units,$(BESIDE) $(UNITS) -m "not thorough and not campaign")

test-all: lab-binaries docs page-check $(MPI:=/made)  ## Everything but `make real`, `make test-peers` and `make campaign`, once; what CI runs
	@$(PYTHON_BIN) -m lab peers $(CI_PEERS)
	@$(MAKE) --no-print-directory -j3 test-check all-lab all-units

all-lab:
	PEERS="$(CI_PEERS)" MPIJOB_ELASTIC_TOOLING=changed \
	  $(PYTEST) $(SPREAD) tests/lab tests/peers tests/tooling -m "not campaign"

all-units: export HYPOTHESIS_PROFILE := thorough
all-units:
	$(call shown_at_end,units,$(BESIDE) $(UNITS) -m "not campaign")

test-fresh:  ## Run `make demo` in a fresh clone, where nothing but git, make and Python is found
	@scripts/fresh demo

check: setup page-check  ## Lint, format, spelling, types, layers
	$(CHECK)

hooks: setup  ## Install a git hook that checks the files of each commit: lint, format, spelling
	@.venv/bin/pre-commit install

page-check: $(PAGE)/made  ## Lint, format and types of the dashboard's JavaScript and CSS
	PATH="$(PAGE)/bin:$$PATH" $(PAGE)/node_modules/.bin/biome check --config-path=scripts/page mpijob_elastic/cli/dashboard/page
	PATH="$(PAGE)/bin:$$PATH" $(PAGE)/node_modules/.bin/tsc --project scripts/page

fmt: setup $(PAGE)/made  ## Format, and mend what ruff and biome can mend
	.venv/bin/ruff check --fix --quiet . ; .venv/bin/ruff format .
	PATH="$(PAGE)/bin:$$PATH" $(PAGE)/node_modules/.bin/biome check --write --config-path=scripts/page mpijob_elastic/cli/dashboard/page

unit: setup $(MPI:=/made)  ## The tests of the product that need no control plane; T=decide: those of one folder or file
	$(PYTEST) $(if $(T),tests/product/$(T),$(UNITS)) -m "not thorough" $(ARGS)

lab: lab-binaries  ## All tests of the product on a real control plane; T=capabilities/autoscaling: those of one folder or file
	$(PYTEST) tests/lab/$(T) $(ARGS)

matrix: setup  ## A part of the lab tests on several versions of Kubernetes (KUBERNETES="v1.30.14 v1.36.3"), the units on several Pythons (PYTHONS="3.13")
	$(PYTHON_BIN) scripts/matrix.py $(KUBERNETES)
	$(PYTHON_BIN) scripts/pythons.py $(PYTHONS)

campaign: lab-binaries  ## Search for hours for what breaks the product (ARGS="hostile-objects --seed 7 --minutes 5")
	$(PYTHON_BIN) -m tests.campaign $(ARGS)
	$(if $(ARGS),,$(MAKE) long)
	$(if $(ARGS),,$(PYTEST) tests -m campaign --ignore=tests/real)

# Ten times as many examples; each capability taken away, and the long model check with refused writes; every write that
# kills or is refused, where CI strikes an eighth by date; the tests of the lab, which CI runs only when they have changed.
long: lab-binaries  ## What CI leaves out to be quick: some 50 minutes
	MPIJOB_ELASTIC_EVERY_WRITE=1 HYPOTHESIS_PROFILE=long $(PYTEST) $(SPREAD) tests/product -m "hypothesis and not campaign"
	$(PYTEST) $(SPREAD) tests/modelcheck tests/product/test_rooms_apart.py -m campaign
	MPIJOB_ELASTIC_EVERY_WRITE=1 $(PYTEST) $(SPREAD) tests/lab tests/modelcheck -k "at_any_write or does_not_need or goal_is_reached or one_way_after_another"
	MPIJOB_ELASTIC_TOOLING=record $(PYTEST) tests/tooling

real: lab-binaries  ## The tests with pods that run; as root, else they are skipped and say why (LAB_KIND=1: on kind, which nobody has tried)
	@$(if $(LAB_KIND),,scripts/real-node-setup)
	MPIJOB_ELASTIC_RECORD_RUNS=1 $(PYTEST) tests/real $(ARGS)

test-peers: lab-binaries  ## Build Helm, prometheus-adapter, KEDA, cert-manager, metrics-server, Kueue, Volcano, Coscheduling, Koordinator, karmadactl and Arena, install Prometheus (Debian, Ubuntu; as root), once, and test beside them
	@scripts/peers-setup
	@$(PYTHON_BIN) -m lab peers
	MPIJOB_ELASTIC_RECORD_RUNS=1 $(PYTEST) tests/peers $(ARGS)

bench: lab-binaries  ## Measure; see docs/records/performance.md
	$(PYTHON_BIN) -m bench all $(ARGS)

bench-released: lab-binaries  ## Measure changes of size once, beside the figures of the last release; CI ends with it, and judges none
	$(PYTHON_BIN) -m bench scale --repeat 1 --released docs/records/released.json

image: setup  ## Build the image into dist/, without Docker and without root (Debian, Ubuntu)
	$(PYTHON_BIN) -m lab.images.product

release: image  ## Build everything of a release into dist/, with checksums and notes (HOME_URL=https://github.com/... IMAGE=REPOSITORY/mpijob-elastic)
	$(PYTHON_BIN) -m lab.release --home-url="$(HOME_URL)" --image="$(IMAGE)" --artifact-hub-id="$(ARTIFACT_HUB_ID)"

docs: $(SITE)/made  ## Build docs/ as a site into dist/site; broken links and headings fail
	@$(PYTHON_BIN) -m scripts.commands_page
	@$(PYTHON_BIN) -m scripts.compatibility
	@$(PYTHON_BIN) -m scripts.rights_table
	@$(PYTHON_BIN) -m scripts.signs_table
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build  # with --quiet it would not count warnings
	@! grep -rE '<(script|link|img)[^>]+(src|href)="?(https?:)?//' dist/site --include=*.html  # nothing is loaded from elsewhere

screenshots: setup  ## Take pictures of the dashboard into dist/screenshots, three of them for docs/ (needs chromium)
	$(PYTHON_BIN) -m tests.screenshots

$(SITE)/made: requirements/docs.txt | setup
	@.venv/bin/uv venv --quiet --clear --python $(PYTHON_BIN) $(SITE)
	@.venv/bin/uv pip sync --quiet --python $(SITE) --require-hashes requirements/docs.txt
	@touch $@

$(PAGE)/made: requirements/page.txt scripts/page/package.json scripts/page/package-lock.json | setup
	@.venv/bin/uv venv --quiet --clear --python $(PYTHON_BIN) $(PAGE)
	@.venv/bin/uv pip sync --quiet --python $(PAGE) --require-hashes requirements/page.txt
	@cp scripts/page/package.json scripts/page/package-lock.json $(PAGE)
	@$(PAGE)/bin/npm ci --prefix $(PAGE) --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

$(MPI:=/made): .venv/%/made: requirements/%.txt | setup
	@.venv/bin/uv venv --quiet --clear --python $(PYTHON_BIN) $(@D)
	@.venv/bin/uv pip sync --quiet --python $(@D) --require-hashes $<
	@touch $@

manifests: lab-binaries  ## Render config/ into the package, as `mpijob-elastic install` applies it, and into the chart
	$(PYTHON_BIN) -m lab.render

lock: setup  ## Write the lock files again from pyproject.toml
	PATH="$(CURDIR)/.venv/bin:$$PATH" requirements/lock.sh

clean:  ## Remove .venv and caches (built binaries stay in ~/.cache/mpijob-elastic)
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
