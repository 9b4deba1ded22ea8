"""The HPA of a job: when it is made, changed and deleted, and whom it gives way to."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import DeleteAutoscaler, WriteAutoscaler
from mpijob_elastic.model import autoscale
from mpijob_elastic.model.autoscale import Autoscale, Autoscaler
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.policy import Policy
from mpijob_elastic.model.wire import Owned
from tests.builders import NOW, job

CPU = Autoscale(value=70)
POLICY = Policy(min_replicas=2, max_replicas=8, autoscale=CPU)
SPEC = autoscale.spec(CPU, "j", least=2, most=8, paused=False)


def hpa(name: str = "mpijob-j", uid: str = "uid-of-j", *, labelled: bool = True, **facts: Any) -> Autoscaler:
    metadata = Owned(name=name, namespace="default", uid=f"uid-of-{name}", resource_version="1", job="j", job_uid=uid)
    return Autoscaler(metadata=metadata, labelled=labelled, **{"spec": {**SPEC, "default": 1}, **facts})


OTHER = hpa("own", "", labelled=False, spec={})


def asking(*there: Autoscaler, **facts: Any) -> JobView:
    return job(3, **{"policy": POLICY, "autoscalers": there, **facts})


def test_it_is_made_once() -> None:
    due = decide(asking(), now=NOW).autoscaler
    assert isinstance(due, WriteAutoscaler)
    assert (due.ref, due.spec, due.note.message) == (None, SPEC, "HPA mpijob-j: 2 to 8 workers by cpu")
    assert decide(asking(hpa()), now=NOW).autoscaler is None


@pytest.mark.parametrize(
    "view",
    [
        asking(hpa(), policy=replace(POLICY, max_replicas=6)),
        asking(hpa(), policy=replace(POLICY, autoscale=Autoscale(name="q", value=1))),
        asking(hpa(spec={**SPEC, "maxReplicas": 100})),
        asking(hpa(), suspended_by="annotation"),
        asking(hpa(spec=autoscale.spec(CPU, "j", least=2, most=8, paused=True))),
    ],
)
def test_it_is_kept_as_it_should_be(view: JobView) -> None:
    due = decide(view, now=NOW).autoscaler
    assert isinstance(due, WriteAutoscaler)
    assert due.ref
    assert due.ref.name == "mpijob-j"
    assert decide(replace(view, autoscalers=(hpa(spec=due.spec),)), now=NOW).autoscaler is None


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"policy": Policy(min_replicas=2, max_replicas=8)}, "mpijob-elastic/autoscale does not ask for it"),
        ({"finished": True}, "the job has finished"),
        ({"elastic": False, "policy": POLICY}, "the job is not elastic"),
        ({"autoscalers": (hpa(), OTHER)}, "another HPA scales the job"),
    ],
)
def test_it_goes(facts: dict[str, Any], why: str) -> None:
    view = asking(hpa(), **facts)
    due = decide(view, now=NOW).autoscaler
    assert isinstance(due, DeleteAutoscaler)
    assert (due.ref.name, due.note.message) == ("mpijob-j", f"HPA mpijob-j is deleted: {why}")
    for rest in ((hpa(deleting=True),), ()):
        others = tuple(found for found in view.autoscalers or () if found is OTHER)
        assert decide(replace(view, autoscalers=(*rest, *others)), now=NOW).autoscaler is None


@pytest.mark.parametrize(
    "view",
    [
        asking(autoscalers=None),
        asking(OTHER),
        asking(foreign="another operator"),
        asking(hpa(), foreign="another operator", policy=Policy()),
        asking(deleting=True),
        job(3, autoscalers=(OTHER,)),
        # Whoever labels an HPA as ours without our owner has made it.
        asking(hpa("fake", "")),
    ],
)
def test_nothing_is_written(view: JobView) -> None:
    assert decide(view, now=NOW).autoscaler is None


def test_what_a_former_job_of_the_name_left_is_no_rival() -> None:
    assert isinstance(decide(asking(hpa(uid="former")), now=NOW).autoscaler, WriteAutoscaler)


def test_the_job_says_who_scales_it_already() -> None:
    said = [action for action in decide(asking(OTHER), now=NOW).actions if "AutoscalerYields" in str(action)]
    assert "HPA own scales j. Delete that HPA" in str(said)
    view = asking(hpa(), size_manager="argocd-controller")
    assert "argocd-controller sets Worker.replicas of j too" in str(decide(view, now=NOW).actions)
    assert "SizeManaged" not in str(decide(asking(hpa()), now=NOW).actions)
