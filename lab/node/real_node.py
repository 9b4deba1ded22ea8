"""Start and end a real node: its namespaces, its cable, containerd, images, the kubelet."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lab import nodes
from lab.api import Api
from lab.children import Children
from lab.components import Component
from lab.credentials import Credentials
from lab.layout import Layout
from lab.node import addresses, cgroups, containerd, files, kubelet, namespaces, switch
from lab.node.addresses import Place
from lab.processes import Identity

Wait = Callable[[str, Callable[[], bool]], None]


@dataclass(frozen=True, kw_only=True)
class RealNode:
    """A real node; `wait` names what it waits for and returns once the condition holds."""

    place: Place
    layout: Layout
    kubelet: Path
    credentials: Credentials
    children: Children
    wait: Wait

    @property
    def up(self) -> bool:
        """Return True if it was started and not ended since."""
        return self.place.name in self.children.identities()

    def begin(self) -> None:
        """Start all that needs no API server; the switch must be there."""
        place = self.place
        files.write(self.layout, place, self.credentials)
        cgroups.create(self._group)
        self.children.start(self._namespaces())
        self.wait(f"the namespaces of {place.name}", place.prepared(self.layout).exists)
        switch.plug(place, switch=self._switch, node=self._pid)
        self.children.start(self._inside(place.containerd, containerd.command()))

    def join(self) -> None:
        """Start the rest."""
        root = Path(f"/proc/{self._pid}/root")
        socket = root / addresses.CONTAINERD_SOCKET.relative_to("/")
        self.wait(self.place.containerd, socket.exists)
        containerd.load(self._pid, addresses.pause_archive(self.layout))
        self.children.start(
            self._inside(self.place.kubelet, kubelet.command(self.place, labels=nodes.REAL))
        )

    def await_use(self, api: Api, since: datetime) -> None:
        """Return when pods can be scheduled on the node, as its kubelet said after `since`, UTC."""
        self.wait(
            self.place.name,
            lambda: any(self._usable(one, since) for one in api.get("/api/v1/nodes")["items"]),
        )

    def lose_power(self) -> None:
        """Cut it off, so that no peer gets a FIN or RST, then end all of it at once."""
        first = Identity.of(namespaces.first_of(self._pid))
        switch.pull(self.place, switch=self._switch)
        self.children.end(first, self.place.components)
        cgroups.remove(self._group)

    @property
    def _group(self) -> str:
        return cgroups.of_node(self.layout, self.place.name)

    @property
    def _pid(self) -> int:
        return self.children.identities()[self.place.name].pid

    @property
    def _switch(self) -> int:
        return self.children.identities()[switch.COMPONENT].pid

    def _namespaces(self) -> Component:
        directories = (self.place.lib(self.layout), self.place.log(self.layout), self.kubelet)
        arguments = (*map(str, directories), self._group, self.place.address)
        first = namespaces.first(*namespaces.module("lab.node.first", *arguments))
        return Component(name=self.place.name, command=cgroups.as_all_there_is(self._group, first))

    def _inside(self, name: str, command: list[str]) -> Component:
        there = namespaces.inside(self._pid, command)
        return Component(name=name, command=cgroups.among_programs(self._group, there))

    def _usable(self, node: dict[str, Any], since: datetime) -> bool:
        return node["metadata"]["name"] == self.place.name and nodes.usable_since(node, since)
