"""Run parts of the campaign: see the package."""

import argparse
import sys
import traceback
from datetime import UTC, datetime
from importlib import import_module
from random import SystemRandom

from tests.campaign.part import HEADER, Options, Outcome, row

# The parts in the order in which they run. Each is imported only when it runs.
PARTS = {
    "bad-neighbour": "tests.campaign.bad_neighbour",
    "failovers": "tests.campaign.failovers",
    "hostile-objects": "tests.campaign.hostile_objects",
    "properties": "tests.campaign.properties",
    "random-sequences": "tests.campaign.random_sequences",
    "rotations": "tests.campaign.rotations",
    "size": "tests.campaign.size",
    "soak": "tests.campaign.soak",
    "stale-missed-crashed": "tests.campaign.stale_missed_crashed",
}


def main() -> int:
    """Run the parts that the command line names; return 1 if a part found a violation."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("parts", metavar="PART", nargs="*", help=f"default: all, which are {', '.join(PARTS)}")
    parser.add_argument("--seed", type=int, help="repeat the run with this seed; default: another seed each time")
    parser.add_argument("--minutes", type=float, help="end each part after this time; default: its own number of runs")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    seed = SystemRandom().randrange(2**32) if given.seed is None else given.seed
    options = Options(seed=seed, minutes=given.minutes)
    parts = given.parts or list(PARTS)
    print(f"campaign: {', '.join(parts)} with --seed {seed}", file=sys.stderr, flush=True)
    rows, found = [HEADER], False
    for part in parts:
        outcome = _run(part, options)
        found = found or bool(outcome.violations)
        for violation in outcome.violations:
            print(f"{part}: {violation}", file=sys.stderr)
        rows.append(row(part, datetime.now(UTC).date(), seed, outcome))
        print(rows[-1], file=sys.stderr, flush=True)
    print("\n".join(rows))
    return int(found)


def _run(part: str, options: Options) -> Outcome:
    """Run a part; its crash is a violation, so the parts after it run all the same."""
    try:
        outcome: Outcome = import_module(PARTS[part]).run(options)
    except Exception:  # noqa: BLE001 - see above
        return Outcome(runs=0, violations=(f"crashed\n{traceback.format_exc(limit=-20)}",), numbers="crashed")
    return outcome


if __name__ == "__main__":
    sys.exit(main())
