"""Run parts of the campaign: see the package."""

import argparse
import sys
import traceback
from datetime import UTC, datetime
from importlib import import_module
from random import SystemRandom

from tests.campaign.part import Options, Outcome, say

# The parts in the order in which they run. Each is a module of that name, imported only when it
# runs.
PARTS = (
    "bad-neighbour",
    "bad-neighbour-stored",
    "failovers",
    "hostile-objects",
    "mpi-lists",
    "properties",
    "queued-jobs",
    "random-sequences",
    "rotations",
    "size",
    "soak",
    "stale-missed-crashed",
    "stale-missed-crashed-queued",
)


def main() -> int:
    """Run the parts that the command line names; return 1 if a part found a violation."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument(
        "parts", metavar="PART", nargs="*", help=f"default: all, which are {', '.join(PARTS)}"
    )
    parser.add_argument(
        "--seed", type=int, help="repeat the run with this seed; default: another seed each time"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        help="end each part after this time; default: its own number of runs",
    )
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    seed = SystemRandom().randrange(2**32) if given.seed is None else given.seed
    parts = given.parts or PARTS
    say(f"campaign: {', '.join(parts)} with --seed {seed}")
    rows, found = (
        ["| part | date | seed | runs | violations | numbers |", "|---|---|---|---|---|---|"],
        False,
    )
    for part in parts:
        outcome = _run(part, Options(seed=seed, minutes=given.minutes))
        found = found or bool(outcome.violations)
        for violation in outcome.violations:
            say(f"{part}: {violation}")
        counts = f"{outcome.runs:,} | {len(outcome.violations)} | {outcome.numbers}"
        rows.append(f"| {part} | {datetime.now(UTC).date()} | {seed} | {counts} |")
        say(rows[-1])
    print("\n".join(rows))
    return int(found)


def _run(part: str, options: Options) -> Outcome:
    """Run a part; its crash is a violation, so the parts after it run all the same."""
    try:
        outcome: Outcome = import_module(f"tests.campaign.{part.replace('-', '_')}").run(options)
    except Exception:  # noqa: BLE001 - see above
        return Outcome(
            runs=0, violations=(f"crashed\n{traceback.format_exc(limit=-20)}",), numbers="crashed"
        )
    return outcome


if __name__ == "__main__":
    sys.exit(main())
