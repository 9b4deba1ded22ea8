"""Logs are found by component, and followed until they are removed."""

from pathlib import Path

import pytest

from lab.errors import LabError
from lab.layout import Layout
from lab.logs import follow, log_files, tail


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "one")
    layout.logs.mkdir(parents=True)
    for name in ("etcd", "kwok"):
        layout.log(name).write_text("first\nsecond\n")
    return layout


def test_all_logs_or_one(layout: Layout) -> None:
    assert log_files(layout, None) == [layout.log("etcd"), layout.log("kwok")]
    assert log_files(layout, "kwok") == [layout.log("kwok")]


def test_an_unknown_component_is_answered_with_those_there_are(layout: Layout) -> None:
    with pytest.raises(LabError, match="lab 'one' has no component 'kubelet'; there are etcd, kwok"):
        log_files(layout, "kubelet")


def test_a_lab_that_is_down_has_no_logs(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="it is not up"):
        log_files(Layout(tmp_path / "none"), None)


@pytest.mark.parametrize(("lines", "expected"), [(0, []), (1, ["second"]), (9, ["first", "second"])])
def test_the_tail(layout: Layout, lines: int, expected: list[str]) -> None:
    with layout.log("etcd").open() as file:
        assert tail(file, lines) == expected


def test_following_gives_what_comes_after_the_tail_until_the_log_is_removed(layout: Layout) -> None:
    log = layout.log("etcd")
    with log.open() as file, log.open("a") as writer:
        tail(file, 0)
        added = follow(log, file)
        writer.write("third\n")
        writer.flush()
        assert next(added) == "third\n"
        log.unlink()
        assert list(added) == []
