"""The state of a lab survives its file, and one that cannot be read is told with what to do."""

import os
from pathlib import Path

import pytest

from lab.control import Status
from lab.errors import LabError
from lab.layout import Layout
from lab.options import Options
from lab.processes import Identity
from lab.programs import Programs
from lab.state import Request, State, decode_request, encode, read_state, write_state

PROGRAMS = Programs(**{field: Path("/bin") / field for field in Programs.__struct_fields__})
STATE = State(
    phase="ready",
    supervisor=Identity.of(os.getpid()),
    options=Options(nodes=7),
    programs=PROGRAMS,
    components={"etcd": Identity(pid=2, started=3)},
)


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert read_state(layout) is None
    write_state(layout, STATE)
    assert read_state(layout) == STATE


def test_a_request_is_one_line() -> None:
    request = Request(name="one", options=Options(), programs=PROGRAMS)
    line = encode(request)
    assert b"\n" not in line
    assert decode_request(line) == request


def test_a_state_of_another_version_is_told(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.state.write_text('{"phase": "asleep"}')
    with pytest.raises(LabError, match="another version of the lab wrote it"):
        read_state(layout)


@pytest.mark.parametrize(
    ("up", "state", "summary"),
    [(True, STATE, "ready"), (False, STATE, "killed"), (True, None, "starting"), (False, None, "down")],
)
def test_a_lab_is_what_its_lock_and_its_state_say(up: bool, state: State | None, summary: str) -> None:
    assert Status(up=up, state=state).summary == summary
