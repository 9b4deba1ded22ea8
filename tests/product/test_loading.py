"""A module is imported while Python looks for no unused objects, and what it makes is left out."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpijob_elastic import names
from mpijob_elastic.loading import load

SEES = "import gc\nlooked = gc.isenabled()\nkept = [[number] for number in range(1000)]\n"


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    enabled = gc.isenabled()
    yield
    gc.unfreeze()
    (gc.enable if enabled else gc.disable)()


@pytest.mark.parametrize("looks", [True, False])
@pytest.mark.parametrize("text", [SEES, f"{SEES}raise ImportError"])
def test_an_import_is_not_looked_through(
    looks: bool, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    name = f"sees_{looks}_{len(text)}"
    (tmp_path / f"{name}.py").write_text(text)
    (gc.enable if looks else gc.disable)()
    before = gc.get_freeze_count()
    if text == SEES:
        assert not load(name).looked
        assert gc.get_freeze_count() - before >= 1000
    else:
        with pytest.raises(ImportError):
            load(name)
    assert gc.isenabled() is looks
    sys.modules.pop(name, None)


def test_a_module_that_is_there_already_takes_nothing_out_of_the_looks() -> None:
    before = gc.get_freeze_count()
    assert load("mpijob_elastic.names") is names
    assert gc.get_freeze_count() == before
