"""The live definition, changed while somebody else changes it too."""

from typing import Any

import pytest

from mpijob_elastic.install.changes import Change, Outcome
from mpijob_elastic.install.refusal import Refused
from tests.doubles.api import TinyApi, refused
from tests.doubles.direct import DirectClient, Sent
from tests.product.upgrade.definitions import definition, v1
from upgrade import crd, live_crd

Object = dict[str, Any]


class Edited(TinyApi):
    """Somebody else edits the definition after each of our first reads."""

    def __init__(self, edits: int) -> None:
        super().__init__()
        self.edits = edits
        self.put(live_crd.PATH, definition("administrator"))

    def upgraded(self, live: Any) -> Object:
        if self.edits > 0:
            self.edits -= 1
            names = {**live["spec"]["names"], "categories": [f"edit-{self.edits}"]}
            self.put(live_crd.PATH, {**live, "spec": {**live["spec"], "names": names}})
        return crd.upgraded(live)

    async def change(self) -> Change:
        return await live_crd.change(DirectClient(self.answer), self.upgraded)


async def test_an_edit_between_our_read_and_our_write_stays() -> None:
    api = Edited(edits=2)
    change = await api.change()
    assert change.outcome is Outcome.CONFIGURED
    stored = api.objects[live_crd.PATH]
    assert stored["spec"]["names"]["categories"] == ["edit-0"]
    assert v1(stored)["subresources"]["scale"] == crd.SCALE
    assert (await api.change()).outcome is Outcome.UNCHANGED
    assert len(api.writes) == 1


async def test_edits_without_end_are_refused() -> None:
    api = Edited(edits=99)
    with pytest.raises(Refused, match="changed by somebody else 5 times"):
        await api.change()
    assert api.writes == []


async def test_what_the_api_server_does_not_accept_is_said() -> None:
    def refuse(sent: Sent) -> None:
        if sent.method != "GET":
            raise refused(422, "Invalid", "a column is wrong")

    api = Edited(edits=0)
    api.hook = refuse
    with pytest.raises(Refused, match=r"does not accept the change of mpijobs\.kubeflow\.org: 422 Invalid: a column"):
        await api.change()
