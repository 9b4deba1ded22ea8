"""Adds what a run of pytest ran to docs/records/runs.json, where MPIJOB_ELASTIC_RECORD_RUNS is set.

`make matrix`, `make test-peers` and `make real` set it. A run of a few tests, chosen by `-k`, is no
news.
"""

import os
from datetime import UTC, datetime

import pytest

from lab.versions import DEFAULT_KUBERNETES
from scripts import compatibility

VARIABLE = "MPIJOB_ELASTIC_RECORD_RUNS"
# By the id of each test: a failure at any time of it counts, and a test that was skipped was not run.
_outcomes: dict[str, str] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Take in how a part of a test ended."""
    if report.failed:
        _outcomes[report.nodeid] = "failed"
    elif report.when == "call" and report.passed:
        _outcomes.setdefault(report.nodeid, "passed")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was run, from the process that has the reports of all."""
    if VARIABLE not in os.environ or hasattr(session.config, "workerinput"):
        return
    if session.config.option.keyword:
        return
    new = compatibility.counted(
        _outcomes, kubernetes=str(DEFAULT_KUBERNETES), at=f"{datetime.now(UTC):%Y-%m-%d}"
    )
    compatibility.RUNS.write_text(
        compatibility.written(compatibility.merged(compatibility.recorded(), new))
    )
