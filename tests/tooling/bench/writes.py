"""Writes as the audit log tells them, for the tests."""

from typing import Any

from bench.audit import Write
from bench.jobs import AGENT

CONTROLLER = "mpijob-elastic-controller/0.1.0"
OPERATOR = "mpi-operator"


def write(at: float, verb: str, resource: str, name: str = "", **more: Any) -> Write:
    """One of the operator's in namespace `n`, answered within a millisecond, unless `more` says otherwise."""
    given = {"subresource": "", "namespace": "n", "user": "lab-admin", "agent": OPERATOR, **more}
    return Write(received=at - 0.001, at=at, verb=verb, resource=resource, name=name, **given)


def ours(at: float, verb: str, resource: str, name: str = "", **more: Any) -> Write:
    user = "system:serviceaccount:mpijob-elastic:mpijob-elastic-controller"
    return write(at, verb, resource, name, user=user, agent=CONTROLLER, **more)


def edit(at: float, job: str = "train") -> Write:
    return write(at, "patch", "mpijobs", job, agent=AGENT)


def node(at: float, verb: str, resource: str, name: str) -> Write:
    return write(at, verb, resource, name, user="lab-kwok", agent="kwok/v0.8.0 (linux/amd64)")
