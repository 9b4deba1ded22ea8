"""Brings the real node up: its files, its namespaces, containerd, the gateway, images, the kubelet."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab import nodes
from lab.api import Api
from lab.children import Children
from lab.components import Component
from lab.credentials import Credentials
from lab.kubeconfig import Server, write_certificate_kubeconfig
from lab.layout import Layout
from lab.node import cgroups, containerd, entering, images, kubelet, network, places
from lab.pki import KeyPair
from lab.programs import Programs

Wait = Callable[[str, Callable[[], bool]], None]


@dataclass(frozen=True, kw_only=True)
class RealNode:
    """One node that joins; `wait` says what is waited for and returns once the condition holds."""

    layout: Layout
    programs: Programs
    credentials: Credentials
    children: Children
    wait: Wait

    def begin(self) -> None:
        """Start all that needs no API server."""
        _write_files(self.layout, self.credentials)
        images.write_pause(_needed(self.programs.pause), self._pause)
        cgroups.create(cgroups.name(self.layout))
        self.children.start(self._namespaces())
        self.wait("the real node's namespaces", places.prepared(self.layout).exists)
        self.children.start(self._inside("containerd", containerd.command()))

    def join(self, api: Api, api_server_port: int) -> None:
        """Start the rest, and return when pods can be scheduled on the node."""
        self.children.start(self._gateway(api_server_port))
        self.wait("the real node's gateway", places.egress_socket(self.layout).exists)
        root = Path(f"/proc/{self._pid}/root")
        self.wait("containerd", (root / places.CONTAINERD_SOCKET.relative_to("/")).exists)
        images.load(self._pid, self._pause)
        self.children.start(self._inside("kubelet", kubelet.command(labels=nodes.REAL)))
        self.wait("the real node", lambda: _usable(api))

    @property
    def _pid(self) -> int:
        return self.children.identities()["node"].pid

    @property
    def _pause(self) -> Path:
        return self.layout.node / "pause.tar"

    def _namespaces(self) -> Component:
        arguments = (places.lib(self.layout), places.log(self.layout), _needed(self.programs.kubelet))
        command = entering.first(*entering.module("lab.node.first", *map(str, arguments)))
        return Component(name="node", command=command)

    def _inside(self, name: str, command: list[str]) -> Component:
        return Component(name=name, command=entering.inside(self._pid, command))

    def _gateway(self, api_server_port: int) -> Component:
        egress = places.egress_socket(self.layout)
        egress.unlink(missing_ok=True)
        arguments = (str(entering.network_namespace(self._pid)), str(api_server_port), str(egress))
        return Component(name="gateway", command=entering.module("lab.node.gateway", *arguments))


def _needed(program: Path | None) -> Path:
    assert program is not None, "programs were asked for without those of a real node"
    return program


def _write_files(layout: Layout, credentials: Credentials) -> None:
    plugins = network.plugin_directory()
    assert plugins is not None, "requirements were not checked"
    shutil.rmtree(layout.node, ignore_errors=True)
    for directory in (places.lab(layout), places.log(layout), _there(layout, network.CONFIGURATIONS)):
        directory.mkdir(parents=True)
    written = {
        containerd.CONFIGURATION: containerd.configuration(pause_image=images.PAUSE, plugins=plugins),
        network.CONFIGURATIONS / "lab.conflist": network.configuration(),
        kubelet.CONFIGURATION: kubelet.configuration(cgroup=cgroups.name(layout)),
        kubelet.RESOLVER: f"nameserver {kubelet.NO_RESOLVER}\n",
    }
    for path, text in written.items():
        _there(layout, path).write_text(text)
    _write_credentials(layout, credentials.kubelet, credentials.authority)


def _write_credentials(layout: Layout, pair: KeyPair, authority: Path) -> None:
    server = Server(url=f"https://{places.SERVICE_ADDRESS}:{places.SERVICE_PORT}", ca=authority.read_bytes())
    write_certificate_kubeconfig(_there(layout, kubelet.KUBECONFIG), server, user=places.USER, pair=pair)
    copies = {kubelet.AUTHORITY: authority, kubelet.CERTIFICATE: pair.certificate, kubelet.KEY: pair.key}
    for path, source in copies.items():
        shutil.copy(source, _there(layout, path))


def _there(layout: Layout, path: Path) -> Path:
    """Where on the machine a path of the node's LIB is."""
    return places.lib(layout) / path.relative_to(places.LIB)


def _usable(api: Api) -> bool:
    items = api.get("/api/v1/nodes")["items"]
    return any(one["metadata"]["name"] == places.NODE and nodes.usable(one) for one in items)
