"""Ask the pods of an installation which version they run, and compare it with that of this command.

A Deployment is ready with any image. A node that has an image keeps it, so where a tag was moved to
another image, pods run the older one. Each pod is asked, because each node has images of its own.
What is on the way, such as a gateway, may let no exec pass at all: then nobody knows the version.
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
    #: Its container runs, and says that it works.
    ready: bool


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
    #: The question did not reach the pod, as far as can be seen, though its container runs.
    is_cut_off: bool = False


async def compare(client: ApiReader, *, seconds: float, say: Say) -> str:
    """Wait until every pod has answered; return what is not known, as a sentence, "" if all is.

    Where no pod's answer got through until then, though all containers run, nothing is known.

    Raises `Refused` if a pod runs another version than this command, `NotInTime` if a pod has not
    answered after `seconds` otherwise, and `errors.KubeError`.
    """
    answers = dict[str, PodAnswer]()

    async def missing() -> str:
        try:
            pods = await running(client)
        except errors.KubeError:
            # What was said before is of pods that may be others by now.
            answers.clear()
            raise
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
    if others := differing_pods(answers.values()):
        raise Refused(others)
    if words and not are_cut_off(answers.values()):
        raise NotInTime(
            f"the version of each pod was not known after {seconds:.0f} s: {words}\n"
            f"{_UNTOUCHED}. Correct this and run the same command again; --no-wait goes on without "
            f"these answers, if you know that the pods run {__version__}"
        )
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
        ready=container["name"] in _ready_containers(pod),
    )


def _ready_containers(pod: dict[str, Any]) -> set[str]:
    found = pod.get("status", {}).get("containerStatuses") or ()
    return {one["name"] for one in found if one.get("ready")}


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
    except ExecFailed as error:
        return PodAnswer(pod=pod, why=str(error), may_pass=True)
    except (errors.Unreachable, errors.ApiError) as error:
        may_pass = isinstance(error, errors.NotFound) or errors.may_pass(error)
        return PodAnswer(
            pod=pod,
            why=str(error),
            may_pass=may_pass,
            is_cut_off=pod.ready and _is_lost(error),
        )
    version = printed_version(result)
    if version is None:
        printed = (result.stderr or result.stdout).strip().splitlines()[-1:]
        return PodAnswer(pod=pod, why=" ".join([*printed, f"exit code {result.exit_code}"]))
    return PodAnswer(pod=pod, version=version)


def _is_lost(error: errors.Unreachable | errors.ApiError) -> bool:
    """Tell whether something on the way answered, or nobody.

    The API server gives a reason with its own refusals. The kubelet gives none where a container
    does not run yet.
    """
    return isinstance(error, errors.Unreachable) or not error.reason


def printed_version(result: ExecResult) -> str | None:
    """Return the version in what the program printed; None if another program printed it."""
    if result.exit_code == _USAGE:
        return UNTOLD
    found = _PRINTED.fullmatch(result.stdout)
    return found[1] if found else None


def unanswered_pods(answers: Iterable[PodAnswer]) -> str:
    """Return which pods are to be asked again, in words; "" if none is."""
    return ", ".join(f"pod {one.pod.name}: {one.why}" for one in answers if one.may_pass)


def are_cut_off(answers: Iterable[PodAnswer]) -> bool:
    """Tell whether no pod has given an answer, and none that is to be asked again could be reached.

    False if there are no pods.
    """
    seen = list(answers)
    if not seen or any(one.version is not None for one in seen):
        return False
    return all(one.is_cut_off for one in seen if one.may_pass)


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
