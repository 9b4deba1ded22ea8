"""One worker to explain, with everything that is known about it and its job."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from mpijob_elastic import names
from mpijob_elastic.decide.actions import Note
from mpijob_elastic.decide.host_list import Next
from mpijob_elastic.decide.state import JobState, WorkerState
from mpijob_elastic.explain.facts import Facts, Pod
from mpijob_elastic.explain.findings import Finding, waiting, wrong
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Worker


@dataclass(frozen=True, kw_only=True)
class Case:
    """A job, or the worker or launcher of that name in it. following: the next step of the host list."""

    state: JobState
    facts: Facts
    following: Next
    name: str

    def of(self, name: str) -> Case:
        """Return the case of a pod of the same job."""
        return replace(self, name=name)

    @property
    def view(self) -> JobView:
        """The job's view."""
        return self.state.view

    @property
    def launcher(self) -> str:
        """The launcher's name."""
        return names.launcher(self.view.name)

    @property
    def worker(self) -> WorkerState | None:
        """The worker's state, None where it has no pod."""
        return self.state.by_name.get(self.name)

    @property
    def pod(self) -> Worker | None:
        """The worker's pod."""
        return self.worker.pod if self.worker else None

    @property
    def gates(self) -> tuple[str, ...]:
        """The scheduling gates of the worker's or the launcher's pod."""
        pod = self.view.launcher if self.name == self.launcher else self.pod
        return pod.facts.gates if pod else ()

    @property
    def held_back(self) -> bool:
        """True if it is meant to wait: only gates of ours hold it back."""
        return bool(self.gates) and names.GATES.issuperset(self.gates)

    @property
    def seen(self) -> Pod:
        """The pod's state in the words of scheduler and kubelet."""
        return self.facts.pods.get(self.name, Pod())

    def kubectl(self, *words: str) -> str:
        """Return a kubectl command for the job's namespace."""
        return " ".join(("kubectl", "-n", self.view.namespace, *words))

    def on_job(self, verb: str, *options: str) -> str:
        """Return a kubectl command on the job."""
        return self.kubectl(verb, "mpijob", self.view.name, *options)

    def noted(self, note: Note) -> Finding:
        """Return a notice of the controller as a finding."""
        cause = re.sub(r"(?<!^)(?=[A-Z])", "-", note.reason).lower()
        said = f"{note.message}; {note.detail}" if note.detail else note.message
        return (wrong if note.warning else waiting)(cause, said, note.next_step or self.on_job("describe"))

    @property
    def describe(self) -> str:
        """The command that describes the pod."""
        return self.kubectl("describe pod", self.name)

    @property
    def controller_log(self) -> str:
        """The command that prints the controller's log."""
        return f"kubectl -n {self.facts.home} logs deployment/{names.CONTROLLER}"
