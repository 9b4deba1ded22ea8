"""Reads what elastic.sh and train.py logged, each line behind the time at which the kubelet got it; pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from lab.training.log import TOLD, Told

# kubectl logs --timestamps; elastic.sh tells the time of the day as well.
_LINE = re.compile(r"^(?P<at>\S+Z) (?:.*?)\d\d:\d\d:\d\d elastic\.sh: (?P<words>.*)$", re.MULTILINE)
_ENDED = re.compile(r"start (?P<number>\d+) ended with (?P<code>\d+) after")


@dataclass(frozen=True, kw_only=True)
class Line:
    """What elastic.sh said; at: seconds since the epoch."""

    at: float
    words: str


@dataclass(frozen=True, kw_only=True)
class Log:
    """Lines of a log, in order."""

    driver: tuple[Line, ...]
    starts: tuple[Told, ...]
    steps: tuple[Told, ...]
    ends: tuple[Told, ...]

    def since(self, at: float) -> "Log":
        """Return the lines from a time on."""
        return Log(
            driver=tuple(line for line in self.driver if line.at >= at),
            starts=tuple(one for one in self.starts if one.time >= at),
            steps=tuple(one for one in self.steps if one.time >= at),
            ends=tuple(one for one in self.ends if one.time >= at),
        )

    @property
    def codes(self) -> list[int]:
        """The exit codes of the starts that have ended."""
        found = (_ENDED.match(line.words) for line in self.driver)
        return [int(match["code"]) for match in found if match]

    @property
    def ended_at(self) -> float | None:
        """When the first start ended; None if none has."""
        return next((line.at for line in self.driver if _ENDED.match(line.words)), None)

    def said(self, text: str) -> Line | None:
        """Return the first line of elastic.sh that has this text."""
        return next((line for line in self.driver if text in line.words), None)


def parse(text: str) -> Log:
    """Read the log of a launcher."""
    told = [msgspec.json.decode(found, type=Told) for found in TOLD.findall(text)]
    return Log(
        driver=tuple(
            Line(at=datetime.fromisoformat(line["at"]).timestamp(), words=line["words"])
            for line in _LINE.finditer(text)
        ),
        starts=_of(told, "start"),
        steps=_of(told, "step"),
        ends=_of(told, "end"),
    )


def _of(told: Sequence[Told], event: str) -> tuple[Told, ...]:
    return tuple(one for one in told if one.event == event)
