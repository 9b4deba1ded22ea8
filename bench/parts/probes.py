"""The CPU that looks into published workers cost the controller, by turns with the build before lines of progress."""

import asyncio
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench import targets
from bench.figures import Figure
from bench.parts.context import Findings, Setting
from bench.probes import looker, shells
from lab.errors import LabError

ROOT = Path(__file__).parents[2]
# The last build that read nothing in a worker but whether ranks run.
BEFORE = "239a9c12"
TOPIC = "Looks into workers"
# Looks of a turn, and looks a second. The controller makes ten a second; its caches are colder then,
# and a look costs more. So many turns take the time that the machine has for other work out of the
# median.
OF_A_TURN, PACE, TURNS = 100, 200, 90

_LONG, _SHORT = "9" * 15, "123456789012.123456"
# What `mpijob_elastic/act/worker_scripts: SCRIPT` prints in a worker. Of a hostile file it reads 256
# bytes as well.
ANSWERS: Mapping[str, bytes] = {
    "none": b"busy\n",
    "honest": b"busy\nalive v1 4242 1234567 1200 256 8 1790000000.123 251.2 101.7 1789990000.000 "
    b"1789999000.500 9000.125 12.250 48 3.750 4000\n",
    # The longest text that is a line: each number has all its digits.
    "longest": b"busy\nalive v1 "
    + b" ".join(
        [
            b"9" * 10,
            b"9" * 20,
            *[_LONG.encode()] * 3,
            b"99999999999.123456",
            *[_SHORT.encode()] * 2,
            *[b"99999999999.123456"] * 2,
            *[b"1.5"] * 2,
            _LONG.encode(),
            b"1.5",
            _LONG.encode(),
        ]
    )
    + b"\n",
    # It is no line until its last byte.
    "almost": b"busy\nalive v1 4242 1234567 " + b"1" * 15 + b" " + b"1.1 " * 56 + b"\n",
    "binary": b"busy\nalive 1 2 " + bytes(range(128, 256)) + bytes(range(128, 244)) + b"\n",
    "spaces": b"busy\nalive v1 1" + b" " * 252 + b"\n",
}


@dataclass(kw_only=True)
class _Side:
    """A build that looks; costs: milliseconds of CPU for a look, by what the worker answers."""

    process: asyncio.subprocess.Process
    costs: dict[str, list[float]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    async def turn(self, answer: str) -> None:
        """Look into the workers of a turn. Raises LabError."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{answer} {OF_A_TURN}\n".encode())
        said = await self.process.stdout.readline()
        if not said:
            raise LabError(f"the prober has ended while it looked into workers that say {answer}")
        cost, lines = said.split()
        self.costs.setdefault(answer, []).append(float(cost))
        self.lines[answer] = self.lines.get(answer, 0) + int(lines)


async def run(setting: Setting) -> Findings:
    """Look into 9,000 workers for each answer; repeats do not count. Raises LabError."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = _checked_out(folder / "before")
        async with (
            shells.serving(ANSWERS, folder) as kubeconfig,
            _looking(before, kubeconfig) as peer,
            _looking(ROOT, kubeconfig) as ours,
        ):
            for side in (peer, ours):  # the first looks of a process cost more
                await side.turn("none")
                side.costs.clear()
            sides = [(peer, "none"), *((ours, answer) for answer in ANSWERS)]
            order = random.Random(TURNS)
            for turn in range(TURNS):
                if turn % 10 == 0:
                    setting.say(f"looks into workers, turns {turn + 1} to {turn + 10} of {TURNS}")
                for side, answer in order.sample(sides, len(sides)):
                    await side.turn(answer)
    return Findings(figures=_figures(ours, peer), notes=[_note(ours)])


def _checked_out(folder: Path) -> Path:
    """Return a folder with the package of the build before."""
    folder.mkdir()
    archive = ["git", "-C", str(ROOT), "archive", BEFORE, "mpijob_elastic"]
    found = subprocess.run(archive, capture_output=True, check=False)
    if found.returncode:
        raise LabError(f"no build {BEFORE}: {found.stderr.decode(errors='replace').strip()}")
    subprocess.run(["tar", "-x", "-C", str(folder)], input=found.stdout, check=True)
    return folder


@asynccontextmanager
async def _looking(build: Path, kubeconfig: Path) -> AsyncIterator[_Side]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, looker.__file__, str(kubeconfig), str(PACE)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(build)},
    )
    try:
        yield _Side(process=process)
    finally:
        process.kill()
        await process.wait()


def _figures(ours: _Side, peer: _Side) -> list[Figure]:
    before = tuple(peer.costs["none"])
    rows = []
    for answer in ANSWERS:
        costs = ours.costs[answer]
        pairs = zip(costs, before, strict=True)
        more = tuple(100 * (cost / usual - 1) for cost, usual in pairs)
        rows.append(_figure(answer, "CPU of a look", "ms", tuple(costs), peer=before))
        rows.append(
            Figure(
                topic=TOPIC,
                group=answer,
                name="more than before",
                unit="%",
                ours=more,
                target=targets.MORE_OF_A_LOOK,
            )
        )
    return rows


def _figure(
    answer: str, name: str, unit: str, ours: tuple[float, ...], *, peer: tuple[float, ...]
) -> Figure:
    return Figure(topic=TOPIC, group=answer, name=name, unit=unit, ours=ours, peer=peer)


def _note(ours: _Side) -> str:
    taken = ", ".join(f"{answer} {ours.lines[answer]}" for answer in ANSWERS)
    return (
        f"The prober of the controller over TLS, in the peer's column that of {BEFORE}, {TURNS} "
        f"turns of {OF_A_TURN} looks each in random order, {PACE} looks a second. Lines of "
        f"progress taken in: {taken}."
    )
