"""Brings the components of a lab up in order, as fast as their readiness allows."""

import datetime as dt
import shutil
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

from lab import components, nodes
from lab.api import Api, ApiError
from lab.children import Children, ComponentEndedError
from lab.components import CRDS, Ports
from lab.credentials import Credentials, write_credentials
from lab.errors import LabError
from lab.kubeconfig import read_server
from lab.layout import Layout
from lab.node import gateway
from lab.node.addresses import places
from lab.node.rack import Rack
from lab.ports import free_ports
from lab.state import Request
from lab.versions import KubernetesVersion

DEADLINE = 120.0  # seconds; a busy machine is slow, a broken lab must still end
POLL = 0.03  # seconds
ATTEMPTS = 3  # a port is lost to another program once in a blue moon
CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True, kw_only=True)
class Started:
    """A lab that is up: the API server's URL, whether `kubectl exec` works, and the real nodes if there are any."""

    server: str
    exec_offered: bool
    rack: Rack | None


@dataclass(frozen=True, kw_only=True)
class Startup:
    """A start of a lab; `say` is told what is waited for, `interrupted` raises when the start is to be given up."""

    layout: Layout
    request: Request
    children: Children
    say: Callable[[str], None]
    interrupted: Callable[[], None]

    def run(self) -> Started:
        """Start everything and return when a pod could be created and would run; raise LabError."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._once()
            except ComponentEndedError as error:
                if not error.lost_port or attempt == ATTEMPTS:
                    raise
                self.children.end_all()
                shutil.rmtree(self.layout.etcd, ignore_errors=True)
        raise AssertionError("unreachable")

    def _once(self) -> Started:
        etcd, etcd_peer, api_server, kubelet = free_ports(4)
        ports = Ports(etcd=etcd, etcd_peer=etcd_peer, api_server=api_server, kubelet=kubelet)
        server = f"https://127.0.0.1:{ports.api_server}"
        real_nodes = places(self.request.options.real_nodes)
        credentials = write_credentials(
            self.layout, server, now=dt.datetime.now(dt.UTC), real_nodes=real_nodes
        )
        rack = None
        if real_nodes:
            rack = Rack(
                layout=self.layout,
                programs=self.request.programs,
                credentials=credentials,
                children=self.children,
                wait=self._await,
            )
            rack.begin(ports.api_server)
        self._start_api(credentials, ports)
        exec_offered = components.sandboxes_work()
        with Api(read_server(self.layout.kubeconfig), credentials.administrator) as api:
            self._await("kube-apiserver", api.ready)
            self._start_rest(credentials)
            if exec_offered:
                self.children.start(
                    components.podexec(self.request.programs, self.layout, credentials, ports)
                )
                self._await("podexec", lambda: _listening(ports.kubelet))
            self._create_objects(api, ports.kubelet if exec_offered else None)
            self._await("custom resource definitions", lambda: _served(api))
            self._await("nodes", lambda: all(map(nodes.usable, api.get("/api/v1/nodes")["items"])))
            self._await("ServiceAccounts", lambda: _has_default_service_account(api))
            if rack:
                rack.join(api)
        return Started(server=server, exec_offered=exec_offered, rack=rack)

    def _start_api(self, credentials: Credentials, ports: Ports) -> None:
        programs, layout = self.request.programs, self.layout
        self.children.start(components.etcd(programs, layout, credentials, ports))
        self._await("etcd", lambda: _listening(ports.etcd))
        api_server = components.api_server(programs, layout, credentials, ports)
        if self.request.options.real_nodes:
            api_server = api_server.also(
                f"--egress-selector-config-file={gateway.write_selection(layout)}"
            )
        if flags := self._gang_flags():
            api_server = api_server.also(flags.gates, flags.served)
        if plugins := self.request.options.admission_plugins:
            api_server = api_server.also(f"--enable-admission-plugins={','.join(plugins)}")
        self.children.start(api_server)

    def _start_rest(self, credentials: Credentials) -> None:
        programs, layout = self.request.programs, self.layout
        flags = self._gang_flags()
        gates = [flags.gates] if flags else []
        self.children.start(
            components.controller_manager(programs, layout, credentials).also(*gates)
        )
        self.children.start(components.scheduler(programs, layout).also(*gates))
        kwok = components.kwok(programs, layout)
        if self.request.options.real_nodes:
            label = "=".join(*nodes.PRETENDED.items())
            kwok = kwok.also(
                "--manage-all-nodes=false", f"--manage-nodes-with-label-selector={label}"
            )
        self.children.start(kwok)

    def _gang_flags(self) -> components.GangFlags | None:
        options = self.request.options
        if not options.gangs:
            return None
        return components.gang_flags(KubernetesVersion.parse(options.kubernetes_version))

    def _create_objects(self, api: Api, kubelet_port: int | None) -> None:
        for path in CRDS:
            api.create(CRD_PATH, yaml.safe_load(path.read_text()))
        options = self.request.options
        for index in range(options.nodes):
            one = nodes.node(
                index,
                kubernetes_version=options.kubernetes_version,
                kubelet_port=kubelet_port,
                beside_real=options.real_nodes > 0,
            )
            api.create("/api/v1/nodes", one)

    def _await(self, what: str, condition: Callable[[], bool]) -> None:
        self.say(what)
        deadline = time.monotonic() + DEADLINE
        while not condition():
            self.interrupted()
            self.children.check()
            if time.monotonic() > deadline:
                raise LabError(
                    f"{what}: not ready after {DEADLINE:.0f} s; its log is in {self.layout.logs}."
                )
            time.sleep(POLL)


def _listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _served(api: Api) -> bool:
    """A definition is said to be established first; only then discovery learns of it, by which kubectl goes."""
    try:
        return all(_kinds_served(api, crd) for crd in api.get(CRD_PATH)["items"])
    except ApiError:
        return False


def _kinds_served(api: Api, crd: dict[str, Any]) -> bool:
    spec = crd["spec"]
    versions = [version["name"] for version in spec["versions"] if version["served"]]
    found = [api.get(f"/apis/{spec['group']}/{version}")["resources"] for version in versions]
    return all(any(one["name"] == spec["names"]["plural"] for one in served) for served in found)


def _has_default_service_account(api: Api) -> bool:
    accounts = api.get("/api/v1/namespaces/default/serviceaccounts")["items"]
    return any(account["metadata"]["name"] == "default" for account in accounts)
