"""`upgrade adopt`: which job it refuses before anything is deleted."""

from collections.abc import AsyncIterator

import pytest

from mpijob_elastic import names
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused
from mpijob_elastic.kube.resources import PODS
from tests.doubles.api import TinyApi
from tests.product.cli import worlds
from tests.product.cli.served import NAMESPACE, put_job, store
from upgrade import adopt

FIXED = ["horovodrun", "-np", "2", "python", "train.py"]
ANNOTATED = {names.ENABLED: "true"}


@pytest.fixture
async def api() -> AsyncIterator[TinyApi]:
    async with TinyApi(selects=True) as found:
        yield found


def started(api: TinyApi, *, mounts: bool, command: list[str]) -> None:
    """Store the launcher of `train`, with that command."""
    launcher = worlds.launcher(mounts=mounts, command=command, namespace=NAMESPACE)
    store(api, PODS, launcher, **{names.LABEL_JOB_NAME: "train"})


@pytest.mark.parametrize(
    ("edited", "mounts", "words"),
    [
        pytest.param(FIXED, False, "training would restart twice", id="the command is fixed"),
        pytest.param(
            worlds.ELASTIC, True, "`mpijob-elastic resume train -n ml`", id="it was edited since"
        ),
    ],
)
async def test_what_a_restart_would_not_help_is_refused(
    api: TinyApi, edited: list[str], mounts: bool, words: str
) -> None:
    put_job(api, "train", command=edited, annotations=ANNOTATED)
    started(api, mounts=mounts, command=FIXED)
    said = list[object]()
    where = Where(kubeconfig=api.kubeconfig, namespace=NAMESPACE)
    async with reached(where) as (client, _):
        with pytest.raises(Refused, match="is not adopted: ") as refused:
            await adopt.adopt(
                client, NAMESPACE, "train", ask=lambda: True, say=said.append, now=1e9, timeout=1.0
            )
    assert words in str(refused.value)
    assert (api.writes, said) == ([], [])
