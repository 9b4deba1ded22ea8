"""What the commands share that install, check and remove mpijob-elastic in a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.target import Where, kubeconfig_file
from mpijob_elastic.install.objects import ObjectChange, Outcome
from mpijob_elastic.install.overlays import EVERYBODY, Overlay
from mpijob_elastic.telemetry.terminal import say

if TYPE_CHECKING:
    from mpijob_elastic.install.installer import InstallPlan
    from mpijob_elastic.kube.writer import ApiWriter

#: What a command says after Ctrl-C.
INTERRUPTED = "Interrupted. Run the same command again to finish."
_WRITES = frozenset({Outcome.CREATED, Outcome.CONFIGURED, Outcome.DELETED})
_COLOURS = {Outcome.CREATED: "green", Outcome.CONFIGURED: "yellow", Outcome.DELETED: "red"}


def plan(
    overlays: list[Overlay] | None,
    image: str | None,
    namespaces: list[str] | None,
    *,
    template_labels: bool,
    lease_readers: str | None = None,
) -> InstallPlan:
    """Return the plan for these options. Raises typer.BadParameter if they do not fit together."""
    if lease_readers is not None and Overlay.USER_ROLES not in (overlays or ()):
        raise typer.BadParameter("needs --overlay user-roles", param_hint="--lease-readers")
    try:
        return work.installer.InstallPlan(
            overlays=tuple(overlays or ()),
            image=image,
            jobs_namespaces=tuple(dict.fromkeys(namespaces or ())),
            template_labels=template_labels,
            lease_readers=EVERYBODY if lease_readers is None else lease_readers,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--jobs-namespace") from None


def removed_overlays(removed: list[Overlay] | None, plan: InstallPlan) -> tuple[Overlay, ...]:
    """Return the overlays that may go. Raises typer.BadParameter if the plan has one of them."""
    found = tuple(removed or ())
    if both := set(found).intersection(plan.overlays):
        raise typer.BadParameter(f"{min(both)} is given, too", param_hint="--remove-overlay")
    return found


@asynccontextmanager
async def connected(where: Where) -> AsyncIterator[ApiWriter]:
    """Give a connected client. Raises `errors.Unconfigured` without a usable configuration."""
    async with await work.client.connect(
        user_agent="mpijob-elastic-cli",
        kubeconfig=kubeconfig_file(where.kubeconfig),
        context=where.context,
    ) as client:
        yield client


class News:
    """Prints what happens to each object, and counts the outcomes."""

    def __init__(self, *, prefix: str, dry_run: bool) -> None:
        self._prefix = prefix
        self._dry_run = dry_run
        self._outcomes: Counter[Outcome] = Counter()
        self._unchecked = 0

    def __call__(self, news: ObjectChange | str) -> None:
        """Print the change of an object, or a sentence."""
        if isinstance(news, ObjectChange):
            self._outcomes[news.outcome] += 1
            self._unchecked += news.unchecked
        tell(news, prefix=self._prefix, differences=self._dry_run, dry_run=self._dry_run)

    def summary(self) -> list[str]:
        """Return the number of objects of each outcome, the most first; then those not checked."""
        counts = [f"{count} {outcome}" for outcome, count in self._outcomes.most_common()]
        lines = [f"{', '.join(counts)}."] if counts else []
        if self._unchecked:
            lines.append(
                f"Objects that were not checked: {self._unchecked}, because their namespace does "
                "not exist yet."
            )
        return lines


def tell(
    news: ObjectChange | str, *, prefix: str = "- ", differences: bool = True, dry_run: bool = False
) -> None:
    """Print the change of an object, or a sentence after `prefix`."""
    if isinstance(news, str):
        say(*(prefix + news).split("\n"))
        return
    notes = ["dry run"] if dry_run and news.outcome in _WRITES else []
    notes += ["not checked"] if news.unchecked else []
    notes += [news.note] if news.note else []
    note = f" ({', '.join(notes)})" if notes else ""
    outcome = typer.style(f"{news.outcome:<11}", fg=_COLOURS.get(news.outcome))
    say(f" {news.identity}{note}", lead=outcome)
    for line in news.difference.splitlines()[2:] if differences else ():
        say(f"    {line}", colour={"+": "green", "-": "red"}.get(line[:1]))


def end(*, dry_run: bool, done: str) -> None:
    """Print how the command ended."""
    say("Dry run: nothing was written." if dry_run else done)


def ending(left: Sequence[str]) -> list[str]:
    """Return how an uninstallation ended, in lines.

    left: what is left to do, in lines.
    """
    return [*left, "Not everything was removed."] if left else ["Uninstalled."]
