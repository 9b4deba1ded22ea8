"""Stale, missed, crashed: what goes wrong for the controller in a day, and how it is brought about."""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from mpijob_elastic.kube import resources
from tests.campaign.sequence_place import Place
from tests.faults.faults import Answer, Call, Lag, LoseEvents, Request, writes
from tests.faults.proxy import FaultProxy

# Seconds after which the watch that lost an event ends with 410: an API server that lost history
# can only say so.
LOST_FOR = 10.0
# Seconds. A watch without a line is opened anew after 70; what is under way then comes once more,
# as late.
SILENCE = 75.0


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The controller of a day and its connection. pool, watched: see `Day`."""

    proxy: FaultProxy
    place: Place
    pool: str
    watched: tuple[resources.Resource, ...]

    def write(self, request: Request) -> str:
        """Return the name of a write that is the same in each day, "" for other requests."""
        path = request.path.partition(f"/namespaces/{self.place.namespace}/")[2]
        return (
            f"{request.method} {'events' if path.startswith('events') else path}"
            if writes(request)
            else ""
        )

    def event(self, line: Mapping[str, Any]) -> str:
        """Return the name of an event of the day's own objects that is the same in each day, "" for others."""
        kind, name = line["object"]["kind"], line["object"]["metadata"].get("name", "")
        is_foreign = name.endswith("-worker-9") or (
            kind == "Node" and not name.startswith(self.pool)
        )
        if line["type"] == "BOOKMARK" or is_foreign:
            return ""
        return f"{line['type']} {kind} {name.replace(self.pool, 'node')}"


@dataclass(kw_only=True)
class Trouble:
    """Nothing goes wrong: the day is recorded. struck: True once it went wrong; events: how often each came."""

    struck: bool = field(default=False, init=False)
    events: Counter[str] = field(default_factory=Counter, init=False, repr=False)

    @property
    def lags(self) -> Mapping[str, float]:
        """Seconds by which watches may lag, by kind."""
        return {}

    def inject(self, setting: Setting, stack: ExitStack) -> None:
        """Bring it about, until the stack unwinds."""

        def seen(line: Mapping[str, Any]) -> bool:
            self.events[setting.event(line)] += 1
            return False

        stack.enter_context(
            setting.proxy.inject(LoseEvents(chosen=seen), on=_watches(*setting.watched))
        )

    def before(self, step: str) -> None:
        """A step is about to be taken."""

    def ease(self) -> None:
        """End what would keep the job from ever being whole."""

    def resume(self) -> None:
        """Go on after that."""


@dataclass(kw_only=True)
class Crash(Trouble):
    """The controller is killed at the nth write of a name, before or after the API server did it; another starts."""

    write: str
    nth: int
    after: bool

    def inject(self, setting: Setting, stack: ExitStack) -> None:
        async def die(_: Request) -> None:
            self.struck = True
            await setting.place.kill()
            await setting.place.lead()

        def is_it(request: Request) -> bool:
            if setting.write(request) != self.write:
                return False
            until_now = (one for one in setting.proxy.requests if one.number <= request.number)
            return sum(setting.write(one) == self.write for one in until_now) == self.nth

        stack.enter_context(setting.proxy.inject(Call(callback=die, after=self.after), on=is_it))


@dataclass(kw_only=True)
class Stale(Trouble):
    """A watch lags by so many seconds all day."""

    kind: resources.Resource
    seconds: float

    @property
    def lags(self) -> Mapping[str, float]:
        late = 2 * self.seconds + SILENCE if self.seconds * 2 > SILENCE else self.seconds
        return {self.kind.kind: late}

    def inject(self, setting: Setting, stack: ExitStack) -> None:
        self.struck = True
        stack.enter_context(setting.proxy.inject(Lag(seconds=self.seconds), on=_watches(self.kind)))


@dataclass(kw_only=True)
class Cut(Trouble):
    """A watch gives nothing from a step on: `refused` by 403, or open and silent."""

    kind: resources.Resource
    refused: bool
    step: str

    @property
    def lags(self) -> Mapping[str, float]:
        return {self.kind.kind: math.inf}

    def inject(self, setting: Setting, stack: ExitStack) -> None:
        self._proxy = setting.proxy
        fault = (
            Answer(status=403, reason="Forbidden")
            if self.refused
            else LoseEvents(chosen=lambda _line: True)
        )
        watches = _watches(self.kind)
        stack.enter_context(
            setting.proxy.inject(fault, on=lambda request: self.struck and watches(request))
        )

    def before(self, step: str) -> None:
        if step == self.step:
            self.resume()

    def ease(self) -> None:
        self.struck = False
        self._proxy.cut(_watches(self.kind))

    def resume(self) -> None:
        self.struck = True
        if self.refused:
            self._proxy.cut(_watches(self.kind))


@dataclass(kw_only=True)
class Missed(Trouble):
    """The nth event of a name never arrives; `LOST_FOR` seconds later the watch ends, and history with it."""

    event: str
    nth: int

    @property
    def lags(self) -> Mapping[str, float]:
        return {self.event.split()[1]: LOST_FOR}

    def inject(self, setting: Setting, stack: ExitStack) -> None:
        [kind] = [kind for kind in setting.watched if kind.kind == self.event.split()[1]]
        watches = _watches(kind)

        def lose(line: Mapping[str, Any]) -> bool:
            self.events[setting.event(line)] += 1
            is_it = not self.struck and self.events[self.event] == self.nth
            if is_it:
                self.struck = True
                asyncio.get_running_loop().call_later(LOST_FOR, end)
            return is_it

        def end() -> None:
            stack.enter_context(
                setting.proxy.inject(Answer(status=410, reason="Expired"), on=watches, times=1)
            )
            setting.proxy.cut(watches)

        stack.enter_context(setting.proxy.inject(LoseEvents(chosen=lose), on=watches))


def _watches(*kinds: resources.Resource) -> Callable[[Request], bool]:
    plurals = {kind.plural for kind in kinds}
    return lambda request: request.watch and request.path.rpartition("/")[2] in plurals
