#!/bin/sh
# Writes the lock files anew from pyproject.toml. Run it after a dependency changed.
set -eu
cd "$(dirname "$0")/.."
lock() { uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url "$@"; }
lock pyproject.toml --output-file requirements/runtime.txt
lock pyproject.toml --group dev --output-file requirements/dev.txt
lock --group docs --output-file requirements/docs.txt
lock --group page --output-file requirements/page.txt
lock --group open-mpi --output-file requirements/open-mpi.txt
lock --group mpich --output-file requirements/mpich.txt
lock --group mpi4py --output-file requirements/mpi4py.txt
# What builds the wheel in the image.
sed -n 's/^requires = \["\(.*\)"\]$/\1/p' pyproject.toml | lock - --output-file requirements/build.txt
# Python and its libraries in the image.
python -m lab.images.product.debian
