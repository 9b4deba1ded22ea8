"""Tests of lab/, bench/ and the campaign, which `make test` leaves to others.

`make long` runs them and records what they passed for; `make test-all` leaves them out as long as
nothing of that has changed.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
# What these tests are about, and what they are made of.
_JUDGED = ("lab", "bench", "scripts", "tests/tooling", "tests/campaign", "tests/doubles")
_PASSED = _HERE / "passed.txt"
_SUFFIXES = {".py", ".go", ".mod", ".sum", ".sh", ".yaml", ".json", ""}


def judged() -> str:
    """The SHA-256 of every source file that these tests are about, with its path."""
    total = hashlib.sha256()
    for file in _files():
        total.update(f"{file.relative_to(_ROOT)}\n".encode())
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def _files() -> Iterator[Path]:
    for folder in _JUDGED:
        for file in sorted((_ROOT / folder).rglob("*")):
            generated = "__pycache__" in file.parts or file == _PASSED
            if file.is_file() and file.suffix in _SUFFIXES and not generated:
                yield file


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test in this folder; skip them where they have passed for these very files."""
    choice = os.environ.get("MPIJOB_ELASTIC_TOOLING", "")
    unchanged = choice == "changed" and _PASSED.read_text().split() == [judged()]
    for item in items:
        if _HERE not in item.path.parents:
            continue
        item.add_marker(pytest.mark.thorough)
        if unchanged:
            item.add_marker(
                pytest.mark.skip(reason="lab, bench and campaign are unchanged since `make long`")
            )


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Record what the tests passed for, where `make long` asks for it."""
    records = os.environ.get("MPIJOB_ELASTIC_TOOLING") == "record"
    if records and exitstatus == 0 and not hasattr(session.config, "workerinput"):
        _PASSED.write_text(f"{judged()}\n")
