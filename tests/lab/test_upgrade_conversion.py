"""What `upgrade convert` prints, given to kubectl: the API server and the webhook take it, and the values are the source's."""

import json

import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube import kubectl_yaml
from tests.product.upgrade import test_migrations as made
from upgrade import conversion

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("webhook")]

# Texts that kubectl reads as something else without quotes.
TEXTS = ["1e-4", "Y", "0o17", "0899", "22:22", "1234e56", "2024-01-15", "=", "~", "null"]
ENV = [{"name": f"V{number}", "value": text} for number, text in enumerate(TEXTS)]
CONTAINERS = {
    "containers": [{"name": "l", "image": "x", "command": ["mpirun", *TEXTS], "env": ENV}]
}
WORKERS = {"containers": [{"name": "w", "image": "x"}]}


def with_texts(job: made.Job, launcher: tuple[str, ...], worker: tuple[str, ...]) -> made.Job:
    """Return the job whose texts look like other types."""
    labels = {"build": "0899", "commit": "1234e56"}
    result = made.changed(job, *launcher, "template", "spec", to=CONTAINERS)
    result = made.changed(result, *worker, "template", "spec", to=WORKERS)
    return made.changed(result, "metadata", "labels", to=labels)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(with_texts(made.old_job(), made.OLD_LAUNCHER, made.OLD_WORKER), id="v1alpha2"),
        pytest.param(with_texts(made.training_job(), made.LAUNCHER, made.WORKER), id="et-operator"),
        pytest.param(with_texts(made.new_job(), made.OLD_LAUNCHER, made.OLD_WORKER), id="v1"),
    ],
)
def test_it_is_taken_as_it_is(source: made.Job, cluster: Cluster, namespace: str) -> None:
    # The source goes the same way: written, read, converted, written.
    [one] = conversion.convert_text(kubectl_yaml.dump(source), where="test")
    assert made.to_do(list(one.notes)) == {}
    options = ("--namespace", namespace, "--dry-run=server", "--output=json", "--filename=-")
    stored = json.loads(cluster.kubectl("create", *options, stdin=conversion.render([one])))
    assert stored["metadata"]["labels"] == {"build": "0899", "commit": "1234e56"}
    [container] = made.role(stored, "Launcher")["template"]["spec"]["containers"]
    assert (container["command"][1:], container["env"]) == (TEXTS, ENV)
