"""Writes in the API server's audit log: who, what, when answered (lab/manifests/audit-policy.yaml).

These times cost the measured processes nothing, and one clock gives both times of every difference.
https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/#audit-k8s-io-v1-Event
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec


@dataclass(frozen=True, kw_only=True)
class Write:
    """A successful write: when it was received and answered, in seconds since the epoch.

    `user` and `agent` are the writer's name and User-Agent; `subresource` is "" for the object
    itself. `credential` tells processes of one ServiceAccount apart that have different tokens; ""
    without a token. `holder`: of a Lease, "" where it is released; None for all else. `uid`: of the
    pod that was to be deleted, where the writer gave it.
    """

    received: float
    at: float
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    user: str
    agent: str
    credential: str = ""
    holder: str | None = None
    uid: str = ""


class _User(msgspec.Struct):
    username: str = ""
    extra: dict[str, list[str]] = {}


class _Reference(msgspec.Struct):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _Response(msgspec.Struct):
    code: int = 0


class _LeaseSpec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None


class _Preconditions(msgspec.Struct):
    uid: str = ""


class _Body(msgspec.Struct):
    spec: _LeaseSpec | None = None
    preconditions: _Preconditions = msgspec.field(default_factory=_Preconditions)


class _Entry(msgspec.Struct, rename="camel"):
    verb: str
    request_received_timestamp: datetime
    stage_timestamp: datetime
    request_uri: str = msgspec.field(default="", name="requestURI")
    user: _User = msgspec.field(default_factory=_User)
    user_agent: str = ""
    object_ref: _Reference = msgspec.field(default_factory=_Reference)
    response_status: _Response = msgspec.field(default_factory=_Response)
    request_object: _Body = msgspec.field(default_factory=_Body)


_decoder = msgspec.json.Decoder(_Entry)
# https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#credential-id
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})


def read(lines: Iterable[bytes]) -> list[Write]:
    """Return the successful writes among audit log lines, without dry runs and reads.

    Raises msgspec.DecodeError if a line is not an audit event.
    """
    return [_write(entry) for entry in map(_decoder.decode, lines) if _counts(entry)]


def _counts(entry: _Entry) -> bool:
    return (
        entry.verb in _VERBS
        and 200 <= entry.response_status.code < 300
        and "dryRun=" not in entry.request_uri
    )


def _write(entry: _Entry) -> Write:
    body = entry.request_object
    return Write(
        received=entry.request_received_timestamp.timestamp(),
        at=entry.stage_timestamp.timestamp(),
        verb=entry.verb,
        resource=entry.object_ref.resource,
        subresource=entry.object_ref.subresource,
        namespace=entry.object_ref.namespace,
        name=entry.object_ref.name,
        user=entry.user.username,
        agent=entry.user_agent,
        credential="".join(entry.user.extra.get(_CREDENTIAL, ())),
        holder=body.spec.holder_identity or "" if body.spec else None,
        uid=body.preconditions.uid,
    )


class Tail:
    """The writes that a running API server logs from now on."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._position = log.stat().st_size
        self._writes: list[Write] = []

    def writes(self) -> list[Write]:
        """Return all writes so far, in the order of their answers.

        An incomplete line waits for the next call.
        """
        with self._log.open("rb") as file:
            file.seek(self._position)
            complete, end, _ = file.read().rpartition(b"\n")
        if end:
            self._position += len(complete) + len(end)
            self._writes = sorted(
                [*self._writes, *read(complete.splitlines())], key=lambda write: write.at
            )
        return self._writes
