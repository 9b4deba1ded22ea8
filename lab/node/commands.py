"""Orders to a lab's supervisor about its real nodes: one order a connection, over a unix socket.

It does them, for the processes of a node are its children, and the end of one that it does not
expect ends the lab.
"""

import contextlib
import socket
from collections.abc import Iterator
from typing import Literal

import msgspec

from lab.errors import LabError
from lab.layout import Layout
from lab.node import addresses
from lab.node.rack import Rack

HURRY = 5.0  # seconds for an order to be said in


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Something to be done to a real node."""

    do: Literal["kill", "start"]
    node: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """It was done, or why not."""

    error: str = ""


class Orders:
    """The supervisor's end; without `listening` there are no real nodes, and no orders."""

    def __init__(self, listening: socket.socket | None, rack: Rack | None) -> None:
        self._listening = listening
        self._rack = rack

    def descriptors(self) -> list[int]:
        """Return what becomes readable when there is an order."""
        return [self._listening.fileno()] if self._listening else []

    def take(self) -> None:
        """Do one order, and answer."""
        assert self._listening is not None
        connection, _ = self._listening.accept()
        with connection, contextlib.suppress(OSError):
            connection.settimeout(HURRY)
            answer = self._do(connection.makefile("rb").readline())
            connection.sendall(msgspec.json.encode(answer))

    def _do(self, line: bytes) -> Answer:
        assert self._rack is not None
        try:
            order = msgspec.json.decode(line, type=Order)
            {"kill": self._rack.kill, "start": self._rack.start}[order.do](order.node)
        except (LabError, msgspec.DecodeError) as error:
            return Answer(error=str(error))
        return Answer()


@contextlib.contextmanager
def taken(layout: Layout, rack: Rack | None) -> Iterator[Orders]:
    """Listen for orders while the block lasts, if there are real nodes."""
    if rack is None:
        yield Orders(None, None)
        return
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(addresses.control_socket(layout)))
        listening.listen()
        yield Orders(listening, rack)


def ask(layout: Layout, order: Order) -> None:
    """Have an order done by the supervisor of a lab that is up; raise LabError."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(addresses.control_socket(layout)))
        except FileNotFoundError:
            raise LabError(
                f"lab {layout.name!r} has no real node; `up --real-nodes 2` makes two."
            ) from None
        connection.sendall(msgspec.json.encode(order) + b"\n")
        answer = connection.makefile("rb").read()
    if not answer:
        raise LabError(
            f"lab {layout.name!r} ended meanwhile; {layout.log('supervisor')} may say why."
        )
    if error := msgspec.json.decode(answer, type=Answer).error:
        raise LabError(error)
