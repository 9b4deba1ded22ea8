"""Us and mpi-operator v0.2.3 as users install them: Deployments on the lab's real node, with their published rights."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lab.cluster import Cluster
from lab.images import build
from lab.images.operator import NAME as OPERATOR
from lab.images.product import image
from lab.images.tools import run
from lab.operator import deployment


@contextmanager
def installed(cluster: Cluster, say: Callable[[str], None]) -> Iterator[None]:
    """Run both during the block, and until the lab ends. Raises LabError."""
    for name in (OPERATOR, image.NAME):
        cluster.load_image(build.ensure(name, say))
    deployment.install(cluster)
    say("mpijob-elastic install")
    arguments = ["install", "--kubeconfig", str(cluster.kubeconfig), "--image", image.REFERENCE]
    run([sys.executable, "-m", "mpijob_elastic", *arguments], say=say)
    yield
