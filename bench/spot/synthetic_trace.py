"""Draw a random trace: the same seed gives the same trace.

Each wanted machine has a place in the pool. In it a machine lives until the first of
- its own end: exponential, with a rate that varies over the day (highest after six hours, lowest after eighteen);
- a reclaim that takes many machines at once: reclaims are a Poisson process, and each takes a machine by chance;
but at least MIN_LIFE, because a provider does not take a machine that has just booted. Then the place is empty while a
new machine joins, and sometimes for a time without capacity (exponential) before that.
Notices come a fixed time before the end; a share of them never comes.
"""

import math
from dataclasses import dataclass
from random import Random

from bench.spot.trace import Instance, Trace

HOUR = 3600.0
DAY = 24 * HOUR
MIN_LIFE = 300.0


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Parameters of the distribution. Times in seconds, shares from 0 to 1.

    notice: AWS gives two minutes before it takes a spot instance, and says that the notice may fail
    (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html).
    The rest is chosen: harsh enough to show differences within a day, in the range of published GPU traces.
    """

    mean_life: float = 8 * HOUR
    daily_swing: float = 0.5
    reclaims_a_day: float = 2.0
    reclaim_share: float = 0.4
    notice: float = 120.0
    unannounced: float = 0.1
    joining: float = 120.0
    shortage_share: float = 0.3
    shortage: float = 40 * 60.0


def generate(seed: int, *, size: int, horizon: float, rules: Rules) -> Trace:
    """Return the trace of a seed. Raises TraceError for an impossible size or horizon."""
    chance = Random(seed)
    reclaims = _reclaims(chance, horizon, rules)
    instances = [instance for place in range(size) for instance in _place(chance, place, reclaims, horizon, rules)]
    source = f"synthetic, seed {seed}, {size} machines for {horizon / HOUR:g} h"
    return Trace(source=source, size=size, horizon=horizon, instances=tuple(instances))


def _reclaims(chance: Random, horizon: float, rules: Rules) -> list[float]:
    found: list[float] = []
    if rules.reclaims_a_day <= 0:
        return found
    at = chance.expovariate(rules.reclaims_a_day / DAY)
    while at < horizon:
        found.append(at)
        at += chance.expovariate(rules.reclaims_a_day / DAY)
    return found


def _place(chance: Random, place: int, reclaims: list[float], horizon: float, rules: Rules) -> list[Instance]:
    found: list[Instance] = []
    up = 0.0
    while up < horizon:
        name = f"{place}-{len(found)}"
        gone = _end(chance, up, reclaims, rules)
        if gone >= horizon:
            found.append(Instance(name=name, up=up))
            break
        noticed = None if chance.random() < rules.unannounced else max(up, gone - rules.notice)
        found.append(Instance(name=name, up=up, noticed=noticed, gone=gone))
        up = gone + rules.joining
        if chance.random() < rules.shortage_share:
            up += chance.expovariate(1 / rules.shortage)
    return found


def _end(chance: Random, up: float, reclaims: list[float], rules: Rules) -> float:
    own = _own_end(chance, up + MIN_LIFE, rules)
    taken = (at for at in reclaims if up + MIN_LIFE <= at < own and chance.random() < rules.reclaim_share)
    return next(taken, own)


def _own_end(chance: Random, since: float, rules: Rules) -> float:
    # Thinning (Lewis and Shedler 1979): candidates at the highest rate, kept in proportion to the rate at their time.
    highest = (1 + rules.daily_swing) / rules.mean_life
    at = since
    while True:
        at += chance.expovariate(highest)
        if chance.random() * (1 + rules.daily_swing) <= 1 + rules.daily_swing * math.sin(2 * math.pi * at / DAY):
            return at
