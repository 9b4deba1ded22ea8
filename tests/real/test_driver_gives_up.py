"""horovodrun gives up at its reset limit: it ends only if kubexec.sh has our `exec` before kubectl.

[horovod] horovodrun ends the children of the shells that it has started. Where /bin/sh is dash, as
in this image, that child is kubexec.sh, and a kubectl below it would live on.
"""

import json
import time

import pytest

from lab.cluster import Cluster
from lab.training import log as training
from lab.training.job import TrainingJob, example
from mpijob_elastic import names
from mpijob_elastic.model import kubexec
from mpijob_elastic.names import SUSPEND
from tests.lab.command_line import CommandLine
from tests.real.pods import until

ENVIRONMENT = {"TARGET_STEPS": "1000000", "MAX_STEPS": "1000000", "STEP_SECONDS": "0.25"}
LAST_WORDS = "reset count 1 has exceeded limit 1 -> stop running"
# Seconds in which a launcher ends that can: horovodrun gives ranks 5 s between SIGTERM and SIGKILL.
ENDS_WITHIN = 60.0

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("scale_served", "training_image", "operator", "elastic"),
]


class Limited:
    """A job whose horovodrun survives one reset."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.job = TrainingJob(cluster=cluster, namespace=namespace)
        self.manifest = example()
        specs = self.manifest["spec"]["mpiReplicaSpecs"]
        specs["Worker"]["replicas"] = 1
        (launcher,) = specs["Launcher"]["template"]["spec"]["containers"]
        launcher["command"][1:1] = ["--reset-limit", "1"]

    def kubectl(self, *arguments: str) -> str:
        return self.job.cluster.kubectl("-n", self.job.namespace, *arguments)

    def edit_script(self) -> None:
        """Edit kubexec.sh as the controller does."""
        config = ("configmap", names.config_map(self.job.name))
        found = ("get", *config, "--ignore-not-found", "-o", "json")
        it = json.loads(
            until("the operator writes kubexec.sh", lambda: self.kubectl(*found) or None)
        )
        edited = kubexec.mapped(it["data"][names.KEY_KUBEXEC])
        assert edited is not None
        patch = json.dumps({"data": {names.KEY_KUBEXEC: edited}})
        self.kubectl("patch", *config, "--type=merge", "-p", patch)

    def give_up(self) -> None:
        """Change the size twice, and wait until horovodrun says that it stops."""
        for size in (1, 2):
            until(
                f"{size} ranks train",
                lambda size=size: training.first_with(self.job.log().steps, size=size, since=0),  # type: ignore[misc]
            )
            self.job.edit(size + 1)
        launcher = names.launcher(self.job.name)
        until(
            "horovodrun gives up",
            lambda: LAST_WORDS in self.kubectl("logs", launcher) or None,
        )


@pytest.fixture
def limited(cluster: Cluster, namespace: str) -> Limited:
    return Limited(cluster, namespace)


def test_the_launcher_ends_with_horovodrun_if_kubexec_sh_has_exec(limited: Limited) -> None:
    limited.manifest["metadata"]["annotations"][SUSPEND] = "true"
    limited.job.create(ENVIRONMENT, manifest=limited.manifest)
    limited.edit_script()
    limited.kubectl("annotate", "mpijob", limited.job.name, f"{SUSPEND}-")
    limited.give_up()
    until(
        "the launcher ends",
        lambda: limited.job.outcome() == "Failed" or None,
        patience=ENDS_WITHIN,
    )


def test_the_launcher_runs_on_if_kubexec_sh_is_the_operators_and_explain_says_so(
    limited: Limited,
) -> None:
    limited.job.create(ENVIRONMENT, manifest=limited.manifest)
    limited.give_up()
    time.sleep(30)
    assert limited.job.outcome() == "Running"
    code, said = CommandLine(limited.job.cluster).run(
        "explain", limited.job.name, "-n", limited.job.namespace
    )
    assert code == 1
    assert LAST_WORDS in " ".join(said.split())


def test_the_edit_helps_only_ranks_that_start_after_it(limited: Limited) -> None:
    limited.job.create(ENVIRONMENT, manifest=limited.manifest)
    until("a rank trains", lambda: training.first_with(limited.job.log().steps, size=1, since=0))
    limited.edit_script()
    limited.give_up()
    time.sleep(40)
    assert limited.job.outcome() == "Running"
