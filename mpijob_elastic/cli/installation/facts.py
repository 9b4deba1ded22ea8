"""What `status` reads of an installation. Times are seconds since the epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mpijob_elastic.cli.rights import UserRight
from mpijob_elastic.kube.lease import LeaseSpec
from upgrade.findings import PreflightFinding
from upgrade.operators import Operator


@dataclass(frozen=True, kw_only=True)
class NotReadable:
    """What this user may not read."""

    verb: str
    #: The resource as `kubectl auth can-i` takes it, with the name of the object if it has one.
    what: str
    #: As `in all namespaces`.
    where: str


@dataclass(frozen=True, kw_only=True)
class SeenDeployment:
    """The Deployment of the controller or of the webhook."""

    image: str
    #: The program that wrote the Deployment, in words.
    by: str
    #: Pods that are available, and pods that are wanted.
    ready: int
    wanted: int
    #: The namespaces whose jobs it covers; none for all.
    namespaces: tuple[str, ...] = ()
    #: The arguments of its container.
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SeenWebhook:
    """What is known of the webhook."""

    #: It is registered; None if that may not be read.
    registered: bool | None
    #: It has answered; None if it was not asked.
    answers: bool | None
    #: The namespace for whose jobs it was asked.
    namespace: str = ""
    #: Why it does not answer, in words; "" if nobody knows.
    trouble: str = ""
    #: What is missing of a webhook that answers, in words; "" for nothing.
    lacks: str = ""
    #: What may be missing of it, in words; "" for nothing.
    doubt: str = ""
    #: Why it was not asked, as a sentence; "" if it was.
    unasked: str = ""
    #: A namespace of jobs for which the API server does not ask the webhook; "" for none.
    left_out: str = ""


@dataclass(frozen=True, kw_only=True)
class InstallationFacts:
    """Everything that `status` knows."""

    #: The version of this program, and of the API server.
    cli: str
    kubernetes: str | NotReadable
    #: The preferred version of each API group that is served.
    groups: Mapping[str, str] | NotReadable
    #: The subresources of MPIJobs are served as `mpijobs/scale`; None without MPIJobs of v1.
    subresources: frozenset[str] | NotReadable | None
    #: None if there is none.
    lease: LeaseSpec | NotReadable | None
    #: The Lease is not renewed any more, in words; "" if it is, or if nobody knows.
    trouble: str
    #: ClusterRoles of ours are there, as far as this user may read that.
    is_left: bool
    controller: SeenDeployment | NotReadable | None
    webhook_pods: SeenDeployment | NotReadable | None
    webhook: SeenWebhook
    #: Why the registration was not read, None if it was.
    unregistered: NotReadable | None
    #: When the certificates of the trusted CAs end, and that of the webhook.
    authorities: Sequence[float]
    leaf: float | NotReadable | None
    operators: Sequence[Operator] | NotReadable
    #: What `upgrade preflight` says of the cluster and its jobs.
    preflight: Sequence[PreflightFinding] | NotReadable
    #: The user's namespace.
    namespace: str
    #: The commands that lack a right in that namespace; None if that cannot be told.
    blocked_commands: Mapping[str, frozenset[UserRight]] | None
