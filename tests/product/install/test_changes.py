from typing import Any

from mpijob_elastic.install.changes import Outcome, changed
from mpijob_elastic.install.objects import Identity

ONE = Identity(api_version="v1", kind="Service", namespace="a", name="b")


def live(**fields: Any) -> dict[str, Any]:
    return {"kind": "Service", "metadata": {"name": "b", "resourceVersion": "1", "uid": "u"}, **fields}


def test_no_object_before_means_created() -> None:
    assert changed(ONE, None, live()).outcome is Outcome.CREATED


def test_what_the_api_server_writes_is_no_change() -> None:
    after = {**live(status={"x": 1}), "metadata": {"name": "b", "resourceVersion": "2", "managedFields": [{}]}}
    assert changed(ONE, live(), after).outcome is Outcome.UNCHANGED


def test_a_change_shows_what_differs() -> None:
    change = changed(ONE, live(spec={"replicas": 3}), live(spec={"replicas": 2}))
    assert change.outcome is Outcome.CONFIGURED
    assert change.difference.splitlines()[-3:] == [" spec:", "-  replicas: 3", "+  replicas: 2"]
