"""The end of a run: its output, its file, its exit code."""

import signal
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from bench import runner
from bench.figures import Figure, Target
from bench.parts.context import Findings, Setting
from bench.report import Report
from bench.runner import Wanted
from bench.sides import Peer
from lab.errors import LabError


def wanted(*, json: Path | None = None, check: bool = False, peer: Peer | None = None) -> Wanted:
    return Wanted(repeat=2, json=json, check=check, peer=peer or Peer())


async def slow(setting: Setting) -> Findings:
    figure = Figure(topic="t", group="g", name="time", unit="s", ours=(9.0,) * setting.repeat, target=Target(limit=1))
    return Findings(figures=[figure], notes=["measured on paper"])


async def half(setting: Setting) -> Findings:
    return replace(await slow(setting), failures=[LabError("the peer ended with exit code 255")])


async def broken(_: Setting) -> Findings:
    raise LabError("no lab today")


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_what_was_found_is_shown_and_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runner.measure([slow], wanted(json=tmp_path / "figures.json"))
    shown = capsys.readouterr().out
    assert "measured on paper" in shown
    assert "MISSED" in shown
    saved = msgspec.json.decode((tmp_path / "figures.json").read_bytes(), type=Report)
    assert saved.figures[0].ours == (9.0, 9.0)
    assert saved.circumstances.cores >= 1


def test_a_missed_target_fails_only_where_that_is_asked_for() -> None:
    runner.measure([slow], wanted())
    with pytest.raises(SystemExit) as end:
        runner.measure([slow], wanted(check=True))
    assert end.value.code == runner.MISSED


def test_a_part_that_fails_does_not_keep_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        runner.measure([broken, slow], wanted())
    assert end.value.code == runner.FAILED
    shown = capsys.readouterr()
    assert "MISSED" in shown.out
    assert "not measured: no lab today" in shown.err


def test_a_part_that_fails_half_way_keeps_what_it_took(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        runner.measure([half], wanted(json=tmp_path / "figures.json"))
    assert end.value.code == runner.FAILED
    shown = capsys.readouterr()
    assert "MISSED" in shown.out
    assert "not measured: the peer ended with exit code 255" in shown.err
    assert (tmp_path / "figures.json").exists()


def test_nothing_is_begun_where_the_peers_port_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(SystemExit) as end:
            runner.measure([slow], wanted(peer=Peer(binary=Path("mpi-operator"), port=port)))
    assert end.value.code == runner.FAILED
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"the peer mpi-operator answers about its health on port {port}" in shown.err
    runner.ready(Peer(binary=Path("mpi-operator"), port=port))
