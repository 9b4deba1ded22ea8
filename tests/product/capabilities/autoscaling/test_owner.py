"""Who sets the size of a job besides its user, as a command says it before it sets the size."""

import msgspec
import pytest

from mpijob_elastic.capabilities.autoscaling import SIZING
from mpijob_elastic.capabilities.autoscaling.facts import Autoscale, Scaling
from mpijob_elastic.model.policy import Policy
from tests.builders import Story, job
from tests.doubles.api import Object, merged

HPA: Object = {
    "metadata": {"name": "keda-hpa-j", "namespace": "default"},
    "spec": {"scaleTargetRef": {"kind": "MPIJob", "name": "j", "apiVersion": "kubeflow.org/v1"}},
}
GOING = merged(HPA, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
BOUNDS = Policy(min_replicas=1, max_replicas=4)


@pytest.mark.parametrize(
    ("view", "hpas", "owner"),
    [
        pytest.param(job(2), [], "", id="nobody"),
        pytest.param(
            job(2),
            [HPA],
            "HPA keda-hpa-j sets the size of j; edit or delete that HPA, with KEDA its ScaledObject",
            id="an HPA",
        ),
        pytest.param(job(2), [GOING], "", id="an HPA that goes"),
        pytest.param(
            job(2, policy=BOUNDS, scaling=Scaling(autoscale=Autoscale(value=70))),
            [HPA],
            "the annotation mpijob-elastic/autoscale lets an HPA set the size of j; edit or remove the annotation",
            id="the HPA that the job asks for",
        ),
        pytest.param(
            job(2, policy=BOUNDS, scaling=Scaling(autoscale=Autoscale(fill=True))),
            [],
            "the annotation mpijob-elastic/autoscale lets idle nodes set the size of j; edit or remove the "
            "annotation",
            id="idle nodes",
        ),
        pytest.param(
            job(2, scaling=Scaling(scale_timeout=60.0)), [], "", id="a scale-timeout sets nothing"
        ),
    ],
)
def test_an_owner_is_named_with_what_to_change_instead(
    view: Story, hpas: list[object], owner: str
) -> None:
    read = [SIZING.read(msgspec.json.encode(one)) for one in hpas]
    assert SIZING.owner(view, read) == owner
