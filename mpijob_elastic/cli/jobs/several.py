"""Do the same to several jobs: what is wrong with one is said, and holds back no other."""

import time
from collections.abc import Sequence
from dataclasses import replace

from mpijob_elastic.cli import exit_codes, rights
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import write_change
from mpijob_elastic.cli.jobs.at_work import Leader
from mpijob_elastic.cli.jobs.write_change import BegunChange, Decide, Patience
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube import errors
from mpijob_elastic.telemetry.terminal import say

# The least seconds to wait for each job, so that the end of a fast change is seen.
_LEAST = 2.0


async def change(
    where: Where,
    jobs: Sequence[str],
    decide: Decide,
    patience: Patience,
    *,
    creates: bool = False,
) -> Exit:
    """Change each job, then wait for the ends of the changes; return the worst exit code.

    All changes are written before the first is waited for, and all share one timeout. creates: they
    make new launchers. Raises `errors.KubeError` if there is only one job.
    """
    if len(jobs) == 1:
        return await write_change.change(where, jobs[0], decide, patience, creates=creates)
    end, all_begun = Exit.DONE, list[BegunChange]()
    until = time.monotonic() + patience.seconds
    async with reached(where) as (client, namespace):
        working = await write_change.refuse_uninstalled(client, namespace, jobs, creates=creates)
        write_change.warn(working)
        for job in jobs:
            try:
                begun = await write_change.write(
                    client, namespace, job, decide, waits=patience.wait
                )
            except errors.KubeError as error:
                end = max(end, say_error(error))
                continue
            say(begun.change.says)
            without_wait = write_change.end_without_wait(working, patience, begun.snapshot.view)
            if without_wait is None:
                all_begun.append(begun)
            else:
                end = max(end, without_wait)
        for begun in all_begun:
            shared = replace(patience, seconds=max(_LEAST, until - time.monotonic()))
            try:
                found = await write_change.say_outcome(client, begun, shared, Leader(working))
            except errors.KubeError as error:
                found = say_error(error)
            end = max(end, found)
    return end


def say_error(error: errors.KubeError) -> Exit:
    """Say what is wrong with one of several jobs; return the exit code."""
    say(f"mpijob-elastic: {rights.in_words(error)}", err=True)
    return exit_codes.of(error)
