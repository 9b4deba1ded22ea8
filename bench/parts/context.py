"""The input and the result of every part."""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bench.figures import Figure
from bench.jobs import AGENT
from bench.sides import Peer
from lab.cluster import Cluster
from lab.errors import LabError
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.errors import KubeError
from mpijob_elastic.kube.writer import ApiWriter

# Errors that a measurement may raise. Any other error is a bug.
TROUBLE = (LabError, KubeError, OSError)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Number of repeats, the function that reports progress, and the peer."""

    repeat: int
    say: Callable[[str], None]
    peer: Peer = field(default_factory=Peer)


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Figures, notes for their reader, and the failures that prevented further figures."""

    figures: Sequence[Figure]
    notes: Sequence[str] = ()
    failures: Sequence[Exception] = ()


@asynccontextmanager
async def lab(setting: Setting) -> AsyncIterator[tuple[Cluster, ApiWriter]]:
    """Run a lab during the block, with a client of the benchmark. Raises LabError."""
    with Cluster.start(name=f"bench-{os.getpid()}", say=setting.say) as cluster:
        async with await connect(user_agent=AGENT, kubeconfig=cluster.kubeconfig) as client:
            yield cluster, client
