"""Check that mpijob-elastic is installed and a controller is at work, for commands that need it.

One read of the Lease answers for a cluster where all is well. Other objects are read only where the
Lease is missing. A command that changes something needs a sign of life, which is a Lease with a
leader or an answer of the webhook, if it can see either; a command that only reads says nothing
where this user may not read the Lease. A command that waits goes on reading the Lease, because a
controller may go or come meanwhile.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import leader
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.lease import LeaseObject, LeaseTimes
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import DEPLOYMENTS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.loading import load
from mpijob_elastic.model import phrases
from mpijob_elastic.model.json_parts import seconds
from mpijob_elastic.observe import registration

# Seconds without a renewal after which a command does not wait for a controller.
SILENT = 60.0
# How a change ends that no controller carries out.
ONCE = "the change is carried out once a controller runs"
# Needed only where the Lease does not tell enough.
_CALL = "mpijob_elastic.install.webhook_call"
_STATUS = f"{names.PROGRAM} status"
NOT_INSTALLED = "mpijob-elastic is not installed in this cluster"


@dataclass(frozen=True, kw_only=True)
class AtWork:
    """Who carries out changes in a cluster."""

    #: False where nobody carries out changes until an administrator acts: neither the Lease nor the
    #: webhook exists, or neither gives a sign of life for the namespace of a change, or the
    #: installation does not cover the namespace.
    installed: bool = True
    #: Why nobody carries out changes, in a sentence without a period; "" if somebody does, or if
    #: nobody knows.
    trouble: str = ""
    #: What to do about the trouble, in a part of a sentence.
    advice: str = f"`{_STATUS}` says more"
    #: Why a change may end otherwise although a controller leads, as `trouble`; "" for no reason.
    doubt: str = ""
    #: False where this user may not read what would tell it.
    known: bool = True
    #: True if a controller may take the Lease soon: it was renewed or released a moment ago.
    may_return: bool = False
    #: The namespace of the Lease.
    home: str = names.NAMESPACE


class Leader:
    """Whether a controller leads, for a command that waits.

    As for a controller that wants to lead, only the clock of this machine counts: nobody leads once
    the Lease has not changed for its own duration.
    """

    def __init__(self, working: AtWork, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._home, self._clock = working.home, clock
        self._version, self._changed_at = "", clock()
        #: Why nobody carries out changes, in a sentence without a period; "" if somebody does, or
        #: if nobody knows.
        self.trouble = leader.NOBODY if working.trouble else ""

    @property
    def silence(self) -> str | None:
        """What `explain` would find of a Lease that has not changed for long enough; else None."""
        is_silent = self._clock() - self._changed_at >= leader.RENEWED_WITHIN
        if self.trouble or (self._version and is_silent):
            return self.trouble or leader.NOBODY
        return None

    async def look(self, client: ApiReader) -> str:
        """Read the Lease once more, and return `trouble`."""
        lease = await leader.lease(client, self._home)
        if lease is None or not lease.metadata.name:
            return self.trouble
        version, self._version = self._version, lease.metadata.resource_version
        if not lease.spec.holder_identity:
            self.trouble = leader.NO_HOLDER
        elif version not in {"", self._version}:
            self.trouble, self._changed_at = "", self._clock()
        elif self._clock() - self._changed_at > (
            lease.spec.lease_duration_seconds or LeaseTimes.duration
        ):
            self.trouble = leader.NOBODY
        return self.trouble


async def check_change(
    client: ApiWriter,
    namespace: str | None,
    jobs: Sequence[str] = (),
    *,
    now: float,
    creates: bool = False,
) -> AtWork:
    """Do the same as `check`, for a command that is about to change jobs of a namespace.

    The controller's Deployment tells whether the namespace is covered. Where this user may not
    read it, or where no leader is seen, the webhook is asked by a dry run. It is also asked if the
    command creates launchers, because a launcher gets its host list when it is created. jobs: the
    jobs that exist.
    """
    working = await check(client, now=now)
    if namespace is None or not working.installed:
        return working
    asked = _Question(namespace=namespace, jobs=jobs, creates=creates)
    if not working.known:
        return await _answering(client, working, asked)
    covered = await _covered_namespaces(client, working.home)
    if covered and namespace not in covered:
        return _uncovering(covered, namespace, working.home)
    if working.trouble or covered is None or creates:
        return await _answering(client, working, asked)
    return working


@dataclass(frozen=True, kw_only=True)
class _Question:
    """What a command asks of the webhook."""

    #: Of the jobs.
    namespace: str
    #: Jobs that exist, and that the command changes.
    jobs: Sequence[str]
    #: Whether the command creates launchers.
    creates: bool


async def _answering(client: ApiWriter, working: AtWork, asked: _Question) -> AtWork:
    """Return the same, unless no webhook answers for a namespace for which one should.

    The silence is a doubt where a controller leads, and otherwise the trouble. It says nothing
    where the webhook is not asked for the namespace, or where the question is refused. One question
    is enough where launchers are created and get their host list.
    """
    call, namespace = load(_CALL), asked.namespace
    changes = await _changes(client, asked)
    if changes:
        return working
    answers = await _answers(client, namespace, asked.jobs)
    if answers and changes is False and not working.trouble:
        advice = f"an administrator runs {names.INSTALL_AGAIN}"
        return replace(working, doubt=call.unmarked(namespace), advice=advice)
    if answers is not False or await registration.is_left_out(client, namespace, working.home):
        return working
    silent = f"no webhook of {names.PROGRAM} answers for namespace {namespace}"
    if working.known and not working.trouble:
        doubt = (
            f"{silent}: it does not cover the namespace, a label of the namespace leaves the "
            "webhook out, or the webhook does not work"
        )
        return replace(working, doubt=doubt, advice=f"`{_STATUS} -n {namespace}` says more")
    return replace(
        working,
        installed=False,
        trouble=(
            f"{silent}, and no leader of its controllers is seen, so {names.PROGRAM} is not "
            "installed, does not cover the namespace, or does not work"
        ),
        advice=f"an administrator runs `{_STATUS} -n {namespace}`",
    )


async def _changes(client: ApiWriter, asked: _Question) -> bool | None:
    """Return whether launchers that a command creates get their host list; None if unknown."""
    if not asked.creates:
        return None
    with suppress(errors.KubeError):
        found: bool | None = await load(_CALL).changes_new(client, asked.namespace)
        return found
    return None


async def _answers(client: ApiWriter, namespace: str, jobs: Sequence[str]) -> bool | None:
    """Return whether the webhook refuses a bad job; None if all questions are refused.

    Whoever may not create a job may still change one, so a bad edit of a job is the next question.
    """
    call = load(_CALL)
    try:
        return bool(await call.is_answered(client, namespace))
    except errors.Unreachable:
        return None
    except errors.KubeError:
        pass  # the next question may be allowed
    found = set[bool]()
    for job in jobs:
        with suppress(errors.KubeError):
            found.add(await call.refuses_edit(client, namespace, job, names.MIN_REPLICAS))
        if True in found:
            return True
    return False if found else None


async def _covered_namespaces(client: ApiReader, home: str) -> tuple[str, ...] | None:
    """Return the namespaces that the installation covers; None if this user may not read that.

    No name is returned where all are covered, and where there is no Deployment.
    """
    try:
        raw = await client.find(DEPLOYMENTS.path(home, names.CONTROLLER))
    except errors.Forbidden:
        return None
    except errors.KubeError:
        return ()
    return namespaces_of(msgspec.json.decode(raw)) if raw else ()


def _uncovering(covered: tuple[str, ...], namespace: str, home: str) -> AtWork:
    """Return that an installation for these namespaces does not cover another."""
    options = " ".join(f"--jobs-namespace {one}" for one in (*covered, namespace))
    return AtWork(
        installed=False,
        trouble=(
            f"{names.PROGRAM} covers only the jobs in {phrases.listed(covered)}, so nobody carries "
            f"out changes in namespace {namespace}"
        ),
        advice=(
            f"an administrator runs `{names.INSTALL} {options}`, with the other options of the "
            "installation"
        ),
        home=home,
    )


def namespaces_of(controller: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the namespaces whose jobs the controller of this Deployment handles; none for all."""
    [container, *_] = controller["spec"]["template"]["spec"]["containers"]
    variables = {one["name"]: one.get("value", "") for one in container.get("env") or ()}
    return tuple(variables.get(names.JOBS_NAMESPACE_VARIABLE, "").split())


async def check(client: ApiReader, *, now: float) -> AtWork:
    """Return who carries out changes at time `now`, in seconds since the epoch."""
    lease = await leader.lease(client, names.NAMESPACE)
    if lease is None:
        return AtWork(known=False)
    if lease.metadata.name:
        return await leading(client, lease, names.NAMESPACE, now=now)
    registered = await registration.read(client)
    if registered is None:
        return AtWork(known=False)  # it may be installed in another namespace
    if not registered:
        return AtWork(
            installed=False,
            trouble=f"{NOT_INSTALLED}, so nobody carries out changes of the size",
            advice=f"an administrator runs `{names.INSTALL}`",
        )
    home = registration.home(registered)
    there = await leader.lease(client, home)
    if there is None:
        return AtWork(home=home, known=False)
    return await leading(client, there, home, now=now)


async def leading(client: ApiReader, lease: LeaseObject, home: str, *, now: float) -> AtWork:
    """Return whether the holder of a Lease carries out changes.

    A Lease that is free or has expired is looked at again: another controller may take it over in
    a moment, and the clock of this machine may be wrong by any time.
    """
    spec = lease.spec
    age = now - (seconds(spec.renew_time) or 0.0)
    if spec.holder_identity and age <= _duration(lease):
        return AtWork(home=home)
    again = partial(leader.lease, client, home)
    if await leader.is_renewed(again, lease, within=leader.AGAIN):
        return AtWork(home=home)
    ago = phrases.duration(round(age))
    nobody = f"{leader.NOBODY} (the last leader renewed the Lease {ago} ago)"
    trouble = nobody if spec.holder_identity else leader.NO_HOLDER
    return AtWork(
        trouble=f"{trouble}: changes of the size wait until one runs",
        may_return=age <= SILENT,
        home=home,
    )


def _duration(lease: LeaseObject) -> float:
    """Return for how many seconds a Lease holds without a renewal."""
    return lease.spec.lease_duration_seconds or LeaseTimes.duration
