"""`python -m lab`."""

import sys
from importlib.util import find_spec

if find_spec("typer") is None:
    sys.exit("error: this Python lacks the packages: `make setup`, then `.venv/bin/python -m lab`.")

from lab.cli import main

main()
