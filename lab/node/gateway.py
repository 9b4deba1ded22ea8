"""Passes connections between the machine and the nodes' network, which nothing else connects.

- What pods and kubelets send to the service address goes to the API server, on the machine's
  loopback.
- What the API server sends to nodes, pods and Services comes as HTTP CONNECT through a unix socket
  (its egress selector, https://kubernetes.io/docs/tasks/extend-kubernetes/setup-konnectivity/) and
  goes to the nodes' network; or to the machine's for loopback addresses, where pretended nodes and
  aggregated APIs are.

It runs in the nodes' network, which it sets up and which ends with it (see switch). A socket
belongs to the network namespace its maker was in: so we enter the machine's for that moment.

python -m lab.node.gateway MACHINES_NETWORK API_SERVER_PORT UNIX_SOCKET
"""

import asyncio
import contextlib
import ctypes
import ipaddress
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from lab.layout import Layout
from lab.node import switch
from lab.node.addresses import SERVICE_ADDRESS, SERVICE_PORT, egress_socket

LOOPBACK = "127.0.0.1"
CHUNK = 64 * 1024  # bytes
HEAD_END = b"\r\n\r\n"
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


class Network:
    """The network of a namespace, which `path` names."""

    def __init__(self, path: Path) -> None:
        self._there = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._here = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    @contextmanager
    def _entered(self) -> Iterator[None]:
        _enter(self._there)
        try:
            yield
        finally:
            _enter(self._here)

    def listen(self, host: str, port: int) -> socket.socket:
        """Return a listening socket."""
        with self._entered():
            return socket.create_server((host, port), backlog=512)

    async def connect(self, host: str, port: int) -> socket.socket:
        """Return a socket that is connected; `host` is an address. Raise OSError."""
        with self._entered():
            one = socket.socket()
        one.settimeout(0)
        try:
            await asyncio.get_running_loop().sock_connect(one, (host, port))
        except BaseException:
            one.close()
            raise
        return one


class Gateway:
    """The two ways, between the machine's network (`outer`) and the nodes' (`inner`)."""

    def __init__(self, outer: Network, inner: Network, api_server_port: int) -> None:
        self._outer = outer
        self._inner = inner
        self._api_server_port = api_server_port

    async def to_api_server(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve one connection to the service address."""
        with contextlib.closing(writer), contextlib.suppress(OSError):
            await _join(reader, writer, await self._outer.connect(LOOPBACK, self._api_server_port))

    async def from_api_server(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve one CONNECT."""
        with contextlib.closing(writer), contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(HEAD_END)
            host, port = target(head)
            try:
                if is_loopback(host):
                    other = await self._outer.connect(LOOPBACK, port)
                else:
                    other = await self._inner.connect(host, port)
            except OSError as error:
                writer.write(f"HTTP/1.1 502 {error}\r\n\r\n".encode())
                return
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await _join(reader, writer, other)


def target(head: bytes) -> tuple[str, int]:
    """Return host and port of a CONNECT request."""
    host, _, port = head.split(b" ", 2)[1].decode().rpartition(":")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine; names are given for it only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


async def _join(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, other: socket.socket
) -> None:
    """Pass bytes both ways until both ends have said all."""
    back, forth = await asyncio.open_connection(sock=other)
    with contextlib.closing(forth):
        await asyncio.gather(_pass(reader, forth), _pass(back, writer))


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(CHUNK):
        writer.write(chunk)
        await writer.drain()
    writer.write_eof()


async def serve(machine: Path, api_server_port: int, egress: Path) -> None:
    """Pass connections until cancelled."""
    outer, inner = Network(machine), Network(Path("/proc/self/ns/net"))
    gateway = Gateway(outer, inner, api_server_port)
    listening = inner.listen(SERVICE_ADDRESS, SERVICE_PORT)
    servers = (
        await asyncio.start_server(gateway.to_api_server, sock=listening),
        await asyncio.start_unix_server(gateway.from_api_server, egress),
    )
    await asyncio.gather(*(server.serve_forever() for server in servers))


def write_selection(layout: Layout) -> Path:
    """Write an EgressSelectorConfiguration and return its path; raise LabError if a socket cannot be there.

    "cluster" is what goes to nodes, pods and Services; webhooks that are given by URL are not among
    it
    (https://kubernetes.io/docs/reference/config-api/apiserver-config.v1beta1/#apiserver-k8s-io-v1beta1-EgressSelection).
    """
    transport = {"uds": {"udsName": str(egress_socket(layout))}}
    connection = {"proxyProtocol": "HTTPConnect", "transport": transport}
    content = {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }
    path = layout.root / "egress.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def main() -> None:
    """Read the command line, set the network up and serve."""
    machine, port, egress = sys.argv[1:]
    switch.set_up()
    asyncio.run(serve(Path(machine), int(port), Path(egress)))


if __name__ == "__main__":
    main()
