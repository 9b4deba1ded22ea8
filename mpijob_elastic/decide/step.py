"""A step of a plan: the write or the look that is due, and when to look at the job again.

Each concern of the policy answers with a step, and `plan` puts the steps of a job together.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Generic, NamedTuple, Never, TypeVar

from mpijob_elastic.decide.actions import Action, Look, Note

A_co = TypeVar("A_co", bound="Action | Look", covariant=True)


class Step(NamedTuple, Generic[A_co]):
    """What is due of one concern. Without a write and a time, nothing is due and nothing waits."""

    #: The write or the look; None if none is due.
    write: A_co | None = None
    #: The time at which the job is looked at again (seconds since the epoch); None if only a change
    #: of the job matters.
    again_at: float | None = None


#: Nothing is due, and nothing waits.
NO_STEP: Step[Never] = Step()


class Told(NamedTuple):
    """Notices that hold, and the times at which others come to hold or end."""

    notes: tuple[Note, ...] = ()
    #: Times at which the notices change (seconds since the epoch), in no order.
    times: tuple[float, ...] = ()


NOTHING_TOLD = Told()


class When(Enum):
    """The moments at which a capability's own writes are asked for."""

    #: The write must be done before pods start.
    BEFORE_START = auto()
    #: The write is due whoever manages the job. The second decision, on objects read live, asks for
    #: these writes again.
    ANY_TIME = auto()
    #: The write sets another size, while a driver may train.
    TRAINING = auto()
    #: The write removes the finished job.
    AT_END = auto()


def first(times: Iterable[float | None]) -> float | None:
    """Return the earliest of these times; None if there is none."""
    known = [at for at in times if at is not None]
    return min(known, default=None)


def first_after(now: float, times: Iterable[float | None]) -> float | None:
    """Return the earliest of these times that is still ahead; None if there is none."""
    ahead = [at for at in times if at is not None and at > now]
    return min(ahead, default=None)


def earliest(steps: Iterable[Step[Action | Look]]) -> float | None:
    """Return the earliest time of these steps; None if none has a time."""
    return first([step.again_at for step in steps])


def first_of(steps: Iterable[Step[A_co]]) -> Step[A_co]:
    """Return the first write of these steps, and the earliest time of them all."""
    steps = list(steps)
    writes = [step.write for step in steps if step.write]
    return Step(writes[0] if writes else None, earliest(steps))
