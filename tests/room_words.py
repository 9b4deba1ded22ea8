"""What tests say of each capability and of what users ask of the core, in a module of tests/rooms each.

So a capability can be taken away with its words.
"""

import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

from mpijob_elastic.capabilities import told
from mpijob_elastic.decide.actions import Action, Patch, PodSet
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.policy import Policy

# By type: what an MPIJob asks for, or what was seen; None for nothing.
ByType = Mapping[type, Any]
Draw = Callable[[JobView, Random], JobView]
Change = Callable[[ByType, Any], ByType]


@dataclass(frozen=True, kw_only=True)
class Words:
    """The words for one capability.

    asked, seen: a fact of a job by its name, and what is known once that fact is so. policy: the same of
    an annotation of the core. pod: the same
    of a worker, and what its pod says. nothing: what is as good as not seen. plan: its actions in
    words. said: actions, and what the command line says of each. patches: its patches, each with
    the object before and what of it then is another. queues: its actions only ask for quota, delete
    what holds nothing, or answer who asks for another size. draw: the job once it has a say. done:
    the job after an action. refused: by names of its writes, the file that has one of each refused,
    or why none has. annotations: those of others that it reads, and what they say. bodies: what a
    write of the MPIJob sends, where that is no patch of its own.
    """

    asked: Mapping[str, Change] = field(default_factory=dict)
    policy: Mapping[str, Callable[[Policy, Any], Policy]] = field(default_factory=dict)
    seen: Mapping[str, Change] = field(default_factory=dict)
    pod: Mapping[str, Callable[[Any], Mapping[str, Any]]] = field(default_factory=dict)
    nothing: tuple[object, ...] = ()
    plan: Mapping[type, Callable[[Any], str]] = field(default_factory=dict)
    said: tuple[tuple[Action, str], ...] = ()
    patches: tuple[tuple[Patch, Any, Any], ...] = ()
    queues: bool = False
    draw: Draw | None = None
    done: Mapping[type, Callable[[JobView, Any], JobView]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bodies: Mapping[type, Any] = field(default_factory=dict)


def short(name: str) -> str:
    """A pod of the job `j` by its number or its role."""
    return name.removeprefix("j-worker-").removeprefix("j-").replace("j-worker-", "")


def asked_of(sets: Iterable[PodSet]) -> str:
    return " and ".join(f"{one.count} like {short(one.like.name)}" for one in sets)


def seen_in(view: JobView, seen: ByType) -> JobView:
    """The view where capabilities have seen this."""
    nothing = [one for words in rooms() for one in words.nothing]
    return told(view, seen=[one for one in seen.values() if one is not None and one not in nothing])


def after(
    part: Callable[[Words], Mapping[str, Change]], known: ByType, facts: dict[str, Any]
) -> ByType:
    """What is known once these facts are so; takes those away that a capability has a word for."""
    for words in rooms():
        for name, change in part(words).items():
            if name in facts:
                known = {**known, **change(known, facts.pop(name))}
    return known


def of_policy(policy: Policy, facts: dict[str, Any]) -> Policy:
    """The policy once these facts are so; takes those away that are annotations of the core."""
    for words in rooms():
        for name, change in words.policy.items():
            if name in facts:
                policy = change(policy, facts.pop(name))
    return policy


def of_pod(facts: dict[str, Any]) -> dict[str, Any]:
    """What a pod says once these facts are so; takes them away."""
    found: dict[str, Any] = {}
    for words in rooms():
        for name in words.pod.keys() & facts.keys():
            found |= words.pod[name](facts.pop(name))
    return found


@cache
def rooms() -> tuple[Words, ...]:
    """The words for each capability that is there."""
    folder = Path(__file__).parent / "rooms"
    return tuple(
        import_module(f"tests.rooms.{one.name}").WORDS
        for one in pkgutil.iter_modules([str(folder)])
    )
