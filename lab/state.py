"""State of a lab, as its supervisor reports it: to `up` on standard output, to other commands in a file."""

from pathlib import Path
from typing import Any, Literal

import msgspec

from lab.errors import LabError
from lab.layout import Layout
from lab.options import Options
from lab.processes import Identity
from lab.programs import Programs

# What `up` writes to a supervisor after the request, when the lab shall live on without it.
DETACH = b"detach\n"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Request of `up` to the supervisor: the first line of the supervisor's standard input."""

    name: str
    options: Options
    programs: Programs


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A lab; `message` says what it waits for while starting, and why it failed."""

    phase: Literal["starting", "ready", "failed"]
    supervisor: Identity
    options: Options
    programs: Programs
    message: str = ""
    server: str = ""  # URL of the API server
    exec_offered: bool = False
    components: dict[str, Identity] = {}
    ready_after: float = 0.0  # seconds from the start


def encode(message: Request | State) -> bytes:
    """Return the message as one line of JSON without its end."""
    return msgspec.json.encode(message, enc_hook=_encode_path)


def decode_request(line: bytes) -> Request:
    """Read what `encode` wrote."""
    return msgspec.json.decode(line, type=Request, dec_hook=_decode_path)


def decode_state(line: bytes) -> State:
    """Read what `encode` wrote."""
    return msgspec.json.decode(line, type=State, dec_hook=_decode_path)


def write_state(layout: Layout, state: State) -> None:
    """Replace the state; a reader sees the old one or the new one, never a part."""
    temporary = layout.state.with_suffix(".new")
    temporary.write_bytes(encode(state))
    temporary.replace(layout.state)


def read_state(layout: Layout) -> State | None:
    """Return the last state, or None if there is none (yet)."""
    try:
        return decode_state(layout.state.read_bytes())
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise LabError(
            f"{layout.state} cannot be read ({error}): another version of the lab wrote it. "
            f"Run `down` with that version, or remove {layout.root} if none of its processes run."
        ) from error


def _encode_path(value: Any) -> str:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError


def _decode_path(kind: type, value: Any) -> Path:
    if kind is Path:
        return Path(value)
    raise NotImplementedError
