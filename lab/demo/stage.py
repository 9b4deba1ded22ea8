"""Everything the demo plays on: a lab, our objects, an operator, the webhook and the controller."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab import ports
from lab.build import Say
from lab.cluster import Cluster
from lab.errors import LabError
from lab.install import install_into
from lab.operator.process import HEALTH_PORT, Operator
from lab.registration import called
from lab.replicas import Controller, Webhook
from mpijob_elastic.install.objects import ObjectChange
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.kube.client import connect
from upgrade import scale

TRUST_PATIENCE = 120.0  # seconds until the API server trusts the webhook
POLL = 0.05
READABLE = "--log-format=console"


@dataclass(frozen=True, kw_only=True)
class Stage:
    """All that runs for the demo; `logs` help if it does not work."""

    cluster: Cluster
    operator: Operator
    webhook: Webhook
    controller: Controller

    @property
    def logs(self) -> tuple[Path, ...]:
        """The logs of what makes jobs elastic."""
        return (self.controller.log, self.webhook.log, self.operator.log)


@contextmanager
def set_up(name: str, say: Say, *, also: tuple[Overlay, ...] = ()) -> Iterator[Stage]:
    """Bring everything up, with these overlays, for as long as the block lasts. Raise LabError."""
    with Cluster.start(name=name, say=say) as cluster, staged(cluster, say, also=also) as stage:
        yield stage


@contextmanager
def staged(cluster: Cluster, say: Say, *, also: tuple[Overlay, ...] = ()) -> Iterator[Stage]:
    """Bring everything but the lab up. Raise LabError."""
    say("rights, policies and webhook configurations")
    installed = install_into(cluster, also=also)
    say("the subresource scale of MPIJobs")
    asyncio.run(_make_scalable(cluster, say))
    # The release's own program needs that port; its controller alone does not.
    untouched = not ports.taken(HEALTH_PORT)
    say(
        "the operator"
        if untouched
        else f"the operator, without its health port: {HEALTH_PORT} is taken"
    )
    with Operator.start(cluster, untouched=untouched) as operator:
        say("the webhook and the controller, with the rights of their ServiceAccounts")
        with (
            Webhook.start(cluster, installed, READABLE) as webhook,
            Controller.start(cluster, installed, READABLE) as controller,
        ):
            _await_trust(cluster)
            yield Stage(cluster=cluster, operator=operator, webhook=webhook, controller=controller)


async def _make_scalable(cluster: Cluster, say: Say) -> None:
    """Do what `mpijob-elastic install` does after the objects."""
    async with await connect(
        user_agent="mpijob-elastic-demo", kubeconfig=cluster.kubeconfig
    ) as client:
        await scale.offer(
            client, dry_run=False, seconds=TRUST_PATIENCE, say=lambda news: say(_words(news))
        )


def _words(news: ObjectChange | str) -> str:
    return news if isinstance(news, str) else f"{news.outcome} {news.identity}"


def _await_trust(cluster: Cluster) -> None:
    """Wait until the API server calls the webhook, so that no launcher is created before."""
    deadline = time.monotonic() + TRUST_PATIENCE
    while not called(cluster):
        if time.monotonic() > deadline:
            raise LabError(
                f"the API server does not call the webhook after {TRUST_PATIENCE:.0f} s."
            )
        time.sleep(POLL)
