"""Ask the pods of an installation which version they run, and compare it with that of this command.

A Deployment is ready with any image. A node that has an image keeps it, so where a tag was moved to
another image, pods run the older one. Each pod is asked, because each node has images of its own.
"""

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mpijob_elastic import __version__, names
from mpijob_elastic.install import NotInTime, Refused, rollout, server
from mpijob_elastic.install.objects import Say, read
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import ExecFailed, ExecResult, exec_in_pod
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.kube.resources import PODS

COMMAND = [names.PROGRAM, "--version"]
#: What a pod runs whose program refuses that option, in words: 0.4.0 was the first that has it.
UNTOLD = "a version before 0.4.0"
PATIENCE = 15.0  # seconds for one answer
_USAGE = 2
# Of our containers; a mesh puts its own before them.
_CONTAINERS = frozenset({"controller", "webhook"})
_ENDED = frozenset({"Failed", "Succeeded"})
_PRINTED = re.compile(rf"{names.PROGRAM} (\S+)\s*")


@dataclass(frozen=True, kw_only=True)
class RunningPod:
    """A pod of ours."""

    uid: str
    name: str
    node: str
    container: str
    image: str


@dataclass(frozen=True, kw_only=True)
class PodAnswer:
    """What a pod says."""

    pod: RunningPod
    #: None if it is not known.
    version: str | None = None
    #: Why it is not known, in words; "" if it is.
    why: str = ""
    #: The same question may get an answer a moment later.
    may_pass: bool = False


async def compare(client: ApiReader, *, seconds: float, say: Say) -> str:
    """Wait until every pod has answered; return what is not known, as a sentence, "" if all is.

    Raises `Refused` if a pod runs another version than this command, `NotInTime` if a pod has not
    answered after `seconds`, and `errors.KubeError`.
    """
    answers = dict[str, PodAnswer]()

    async def missing() -> str:
        pods = await running(client)
        new = [pod for pod in pods if pod.uid not in answers or answers[pod.uid].may_pass]
        for answer in await asyncio.gather(*(ask(client, pod) for pod in new)):
            answers[answer.pod.uid] = answer
        there = {pod.uid for pod in pods}
        for gone in answers.keys() - there:
            del answers[gone]
        return unanswered_pods(answers.values())

    try:
        words = await rollout.until(missing, seconds=seconds, say=say)
    except errors.Forbidden as error:
        return _not_known(f"the pods are not known: {error}")
    if words:
        raise NotInTime(
            f"the version of each pod was not known after {seconds:.0f} s: {words}\n"
            f"{_UNTOUCHED}. Correct this and run the same command again"
        )
    if words := differing_pods(answers.values()):
        raise Refused(words)
    return unknown(answers.values())


_UNTOUCHED = "The webhook configurations were not touched"


async def running(client: ApiReader) -> list[RunningPod]:
    """Return our pods but those that have ended or are about to. Raises as `ApiReader.get` does."""
    found = await list_objects(client, PODS.path(names.NAMESPACE), read, selector=server.SELECTOR)
    return [_seen(pod) for pod in found if not _is_ending(pod)]


def _is_ending(pod: dict[str, Any]) -> bool:
    """Tell whether a pod is about to end, or has: a node that evicted it keeps it."""
    if "deletionTimestamp" in pod["metadata"]:
        return True
    return pod.get("status", {}).get("phase", "") in _ENDED


def _seen(pod: dict[str, Any]) -> RunningPod:
    containers = pod["spec"]["containers"]
    container = next((one for one in containers if one["name"] in _CONTAINERS), containers[0])
    return RunningPod(
        uid=pod["metadata"]["uid"],
        name=pod["metadata"]["name"],
        node=pod["spec"].get("nodeName", ""),
        container=container["name"],
        image=container.get("image", ""),
    )


async def ask(client: ApiReader, pod: RunningPod) -> PodAnswer:
    """Ask a pod for its version."""
    try:
        result = await exec_in_pod(
            client,
            names.NAMESPACE,
            pod.name,
            container=pod.container,
            command=COMMAND,
            timeout=PATIENCE,
        )
    except (ExecFailed, errors.NotFound) as error:
        return PodAnswer(pod=pod, why=str(error), may_pass=True)
    except (errors.Unreachable, errors.ApiError) as error:
        return PodAnswer(pod=pod, why=str(error), may_pass=errors.may_pass(error))
    version = printed_version(result)
    if version is None:
        printed = (result.stderr or result.stdout).strip().splitlines()[-1:]
        return PodAnswer(pod=pod, why=" ".join([*printed, f"exit code {result.exit_code}"]))
    return PodAnswer(pod=pod, version=version)


def printed_version(result: ExecResult) -> str | None:
    """Return the version in what the program printed; None if another program printed it."""
    if result.exit_code == _USAGE:
        return UNTOLD
    found = _PRINTED.fullmatch(result.stdout)
    return found[1] if found else None


def unanswered_pods(answers: Iterable[PodAnswer]) -> str:
    """Return which pods are to be asked again, in words; "" if none is."""
    return ", ".join(f"pod {one.pod.name}: {one.why}" for one in answers if one.may_pass)


def differing_pods(answers: Iterable[PodAnswer], ours: str = __version__) -> str:
    """Return which pods run another version than ours and what to do, in words; "" if none does."""
    others = [one for one in answers if one.version not in {None, ours}]
    if not others:
        return ""
    images = ", ".join(sorted({one.pod.image for one in others}))
    return (
        f"these run not {ours}, the version of this command: {_named(others)} (image {images}). "
        "A node that has an image keeps it, although its tag was moved to another image "
        f"(imagePullPolicy: IfNotPresent). Give the image of {ours} a tag of its own or name it by "
        f"its digest, and install that: {names.INSTALL} --image "
        f"REPOSITORY/{names.PROGRAM}@sha256:...\n{_UNTOUCHED}; everything else is that of {ours}. "
        "To stay with the version that runs, install with the command of that version"
    )


def _named(answers: Sequence[PodAnswer]) -> str:
    return ", ".join(f"pod {one.pod.name} on {one.pod.node} {one.version}" for one in answers)


def unknown(answers: Iterable[PodAnswer]) -> str:
    """Return whose version is not known, why, and how to learn it; "" if all are known."""
    silent = [one for one in answers if one.version is None]
    if not silent:
        return ""
    pods = ", ".join(one.pod.name for one in silent)
    reasons = "; ".join(dict.fromkeys(one.why for one in silent))
    return _not_known(f"these pods are not known: {pods} ({reasons})")


def _not_known(what: str) -> str:
    return (
        f"The versions of {what}. Compare what `kubectl exec -n {names.NAMESPACE} POD -- "
        f"{' '.join(COMMAND)}` prints with {__version__}."
    )
