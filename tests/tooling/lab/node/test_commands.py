"""An order to a lab without real nodes, or that ends meanwhile, is answered with what to do."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.layout import Layout
from lab.node import addresses, commands

KILL = commands.Order(do="kill", node="real-1")


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[socket.socket]:
    """The other end."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(addresses.control_socket(Layout(tmp_path))))
        listening.listen()
        yield listening


def answer(listening: socket.socket, text: bytes) -> bytes:
    connection, _ = listening.accept()
    with connection:
        order = connection.makefile("rb").readline()
        connection.sendall(text)
    return order


def test_a_lab_without_real_nodes_takes_no_orders(tmp_path: Path) -> None:
    with commands.taken(Layout(tmp_path), None) as taking:
        assert taking.descriptors() == []
    with pytest.raises(LabError, match="has no real node; `up --real-nodes 2` makes two"):
        commands.ask(Layout(tmp_path), KILL)


@pytest.mark.parametrize(
    ("text", "message"),
    [(b'{"error": "there is no real node"}', "there is no real node"), (b"", "ended meanwhile")],
)
def test_what_went_wrong_is_told(tmp_path: Path, supervisor: socket.socket, text: bytes, message: str) -> None:
    with ThreadPoolExecutor() as pool:
        told = pool.submit(answer, supervisor, text)
        with pytest.raises(LabError, match=message):
            commands.ask(Layout(tmp_path), KILL)
    assert told.result() == b'{"do":"kill","node":"real-1"}\n'
