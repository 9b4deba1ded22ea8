"""All real nodes of a lab, and the network between them: brought up together; single ones end and come back."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lab.api import Api
from lab.children import Children
from lab.components import Component
from lab.credentials import Credentials
from lab.errors import LabError
from lab.kubeconfig import read_server
from lab.layout import Layout
from lab.node import addresses, containerd, namespaces, proxy, switch
from lab.node.real_node import RealNode, Wait
from lab.programs import Programs


@dataclass(frozen=True, kw_only=True)
class Rack:
    """The real nodes of a lab; `wait` says what is waited for and returns once the condition holds."""

    layout: Layout
    programs: Programs
    credentials: Credentials
    children: Children
    wait: Wait

    def begin(self, api_server_port: int) -> None:
        """Start all that needs no API server."""
        self.layout.node.mkdir(exist_ok=True)
        containerd.write_pause(_needed(self.programs.pause), addresses.pause_archive(self.layout))
        self.children.start(self._gateway(api_server_port))
        self.wait("the gateway", addresses.egress_socket(self.layout).exists)
        for node in self._nodes():
            node.begin()

    def join(self, api: Api) -> None:
        """Start the rest, and return when pods can be scheduled on each node."""
        since = datetime.now(UTC)
        for node in self._nodes():
            node.join()
        for node in self._nodes():
            node.await_use(api, since)
        api.create(proxy.ENDPOINT_SLICES, proxy.gateway_endpoint())
        self.children.start(self._proxy())

    def kill(self, name: str) -> None:
        """End a node as if its power failed; no error if it is down.

        Raise LabError if there is none of that name.
        """
        node = self._node(name)
        if node.up:
            node.lose_power()

    def start(self, name: str) -> None:
        """Start a node that was ended, and return when pods can be scheduled on it; no error if it is up.

        It comes without anything it had, but with its images. Raise LabError.
        """
        node = self._node(name)
        if node.up:
            return
        since = datetime.now(UTC)
        node.begin()
        node.join()
        with Api(read_server(self.layout.kubeconfig), self.credentials.administrator) as api:
            node.await_use(api, since)

    def _nodes(self) -> Iterator[RealNode]:
        for place in self.credentials.kubelets:
            yield RealNode(
                place=place,
                layout=self.layout,
                kubelet=_needed(self.programs.kubelet),
                credentials=self.credentials,
                children=self.children,
                wait=self.wait,
            )

    def _node(self, name: str) -> RealNode:
        found = {node.place.name: node for node in self._nodes()}
        if name not in found:
            raise LabError(f"there is no real node {name!r}; there are {', '.join(found)}.")
        return found[name]

    def _gateway(self, api_server_port: int) -> Component:
        egress = addresses.egress_socket(self.layout)
        egress.unlink(missing_ok=True)
        machine = namespaces.network_namespace(os.getpid())
        module = namespaces.module(
            "lab.node.gateway", str(machine), str(api_server_port), str(egress)
        )
        return Component(name=switch.COMPONENT, command=namespaces.new_network(*module))

    def _proxy(self) -> Component:
        there = self.children.identities()[switch.COMPONENT].pid
        command = proxy.command(
            _needed(self.programs.kube_proxy), self.layout, next(iter(self.credentials.kubelets))
        )
        return Component(name=proxy.COMPONENT, command=namespaces.in_network(there, command))


def _needed(program: Path | None) -> Path:
    assert program is not None, "programs were asked for without those of a real node"
    return program
