"""A running lab, as tests, demo and benchmarks use it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from lab import control
from lab.api import Api
from lab.build import Say
from lab.control import Lifeline
from lab.errors import LabError
from lab.kubeconfig import read_server, write_token_kubeconfig
from lab.layout import Layout
from lab.lock import is_held
from lab.node import commands, containerd
from lab.node.addresses import places
from lab.options import Options
from lab.pki import LOOPBACK, KeyPair
from lab.programs import Programs
from lab.state import State, read_state

TOKEN_SECONDS = 24 * 60 * 60
DEFAULT = Options()


def _silent(_: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A lab that is ready.

    with Cluster.start(name="demo", options=Options(nodes=3)) as cluster:
        cluster.kubectl("get", "nodes")

    `binaries` are the paths of the programs it runs (`binaries.kubectl` for a caller's own
    commands), `kubeconfig` is the administrator's, `audit_log` holds one JSON line a write
    (audit.k8s.io/v1 Event, level Metadata).
    """

    name: str
    state_dir: Path
    kubeconfig: Path
    audit_log: Path
    binaries: Programs
    options: Options
    server: str
    exec_offered: bool

    @classmethod
    @contextmanager
    def start(
        cls, *, name: str = "default", options: Options = DEFAULT, say: Say = _silent
    ) -> Iterator[Self]:
        """Run a lab for as long as the block lasts, and not longer than this process.

        Raise LabError.

        Missing programs are built first, which takes minutes; `say` is told what is waited for, a
        short phrase each.
        """
        with Lifeline(control.request(name, options, say)) as lifeline:
            yield cls._of(Layout.of(name), lifeline.ready(say))

    @classmethod
    def attach(cls, *, name: str = "default") -> Self:
        """Return a lab that somebody else keeps up, as `python -m lab up` does; raise LabError if there is none."""
        layout = Layout.of(name)
        state = read_state(layout) if is_held(layout) else None
        if state is None or state.phase != "ready":
            raise LabError(
                f"no lab {name!r} is up; start it with `.venv/bin/python -m lab up --name {name}`."
            )
        return cls._of(layout, state)

    @classmethod
    def _of(cls, layout: Layout, state: State) -> Self:
        return cls(
            name=layout.name,
            state_dir=layout.root,
            kubeconfig=layout.kubeconfig,
            audit_log=layout.audit_log,
            binaries=state.programs,
            options=state.options,
            server=state.server,
            exec_offered=state.exec_offered,
        )

    @property
    def machine(self) -> str:
        """Address at which the API server reaches this machine: where a webhook of its own processes listens."""
        return LOOPBACK

    def kubectl(
        self,
        *arguments: str,
        stdin: str | None = None,
        kubeconfig: Path | None = None,
        editor: str = "false",
    ) -> str:
        """Run kubectl, as administrator by default, and return its output; raise LabError with its complaint.

        `editor` is the command with which `kubectl edit` has a file changed.
        """
        command = [str(self.binaries.kubectl), "--kubeconfig", str(kubeconfig or self.kubeconfig)]
        # What another lab served at the same port is of no use.
        command += [f"--cache-dir={self.state_dir / 'kubectl-cache'}", *arguments]
        # kubectl ends before it would have anything to collect.
        environment = {**os.environ, "KUBE_EDITOR": editor, "GOGC": "off"}
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, check=False, env=environment
        )
        if done.returncode:
            raise LabError(
                f"`kubectl {' '.join(arguments)}` ended with {done.returncode}: {done.stderr.strip()}"
            )
        return done.stdout

    def load_image(self, archive: Path) -> None:
        """Make the images of an archive known on each real node that is up. Raise LabError."""
        state = read_state(Layout(self.state_dir))
        pids = state.components if state else {}
        holders = [
            pids[place.name].pid for place in places(self.options.real_nodes) if place.name in pids
        ]
        if not holders:
            raise LabError(
                f"lab {self.name!r} has no real node; start it with Options(real_nodes=1)."
            )
        for holder in holders:
            containerd.load(holder, archive)

    def kill_node(self, name: str) -> None:
        """End a real node as if its power failed: no peer gets a FIN or RST.

        Its Node stays. Raise LabError.
        """
        commands.ask(Layout(self.state_dir), commands.Order(do="kill", node=name))

    def start_node(self, name: str) -> None:
        """Start a real node that was killed, and return when pods can be scheduled on it.

        Raise LabError.

        It has nothing of what it had but the images.
        """
        commands.ask(Layout(self.state_dir), commands.Order(do="start", node=name))

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """Return a new kubeconfig file that has exactly the rights of this ServiceAccount, for a day; raise LabError.

        The token comes from the TokenRequest API, as it does in a pod. The file is removed with the
        lab.
        """
        token = self._token(namespace, name)
        path = Layout(self.state_dir).kubeconfigs / f"{namespace}.{name}"
        user = f"system:serviceaccount:{namespace}:{name}"
        write_token_kubeconfig(
            path, read_server(self.kubeconfig), user=user, token=token, namespace=namespace
        )
        return path

    def _token(self, namespace: str, name: str) -> str:
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS},
        }
        with self.api() as api:
            answer = api.create(
                f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", request
            )
        return str(answer["status"]["token"])

    def api(self) -> Api:
        """Return the API server as an administrator sees it, for few requests in a row."""
        pki = Layout(self.state_dir).pki
        return Api(
            read_server(self.kubeconfig),
            KeyPair(certificate=pki / "admin.crt", key=pki / "admin.key"),
        )
