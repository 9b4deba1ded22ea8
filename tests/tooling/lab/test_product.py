"""What the lab with the product says when a part of it is missing; the processes here are real, the lab is none."""

import math
import os
import signal
from pathlib import Path

import pytest

from lab import drivers, product
from lab.api import ApiError
from lab.drivers import DriverStandIns
from lab.errors import LabError
from lab.processes import Identity, end, spawn


class NoApi:
    """An API server that does not answer."""

    def get(self, path: str) -> object:
        """Fail."""
        raise ApiError(f"GET {path} was not answered")


def test_each_process_that_has_ended_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = [
        spawn(["sleep", "60"], log=tmp_path / name, environment=os.environ) for name in ("a", "b")
    ]
    parts = {name: Identity.of(one.pid) for name, one in zip("ab", started, strict=True)}
    looks = iter([True, True, True, False])
    monkeypatch.setattr(product, "is_held", lambda _: next(looks))
    os.kill(started[1].pid, signal.SIGKILL)
    started[1].wait()
    monkeypatch.setattr(product, "EVERY", 0.01)
    try:
        product.stay("second", parts)
    finally:
        end(started[0], within=5.0)
    said = "the b has ended, and nobody starts it again: `.venv/bin/python -m lab logs --name second` has its"
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(said)


def test_without_a_lab_the_data_scientist_is_told_which_lab_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(
        LabError, match=r"`.venv/bin/python -m lab product` starts one with a data scientist"
    ):
        product.environment("default", as_user=True)
    with pytest.raises(
        LabError, match=r"start it with `.venv/bin/python -m lab up --name default`"
    ):
        product.environment("default", as_user=False)


def test_drivers_outlast_an_api_server_that_does_not_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    every = DriverStandIns(None, ends=())  # type: ignore[arg-type]
    every.look(NoApi())  # type: ignore[arg-type]
    assert drivers._PODS in capsys.readouterr().err


@pytest.mark.parametrize(
    ("environments", "steps"),
    [
        pytest.param([[]], math.inf, id="no end"),
        pytest.param([[{"name": "TARGET_STEPS", "value": "20"}]], 20, id="an end"),
        pytest.param([None, [{"name": "TARGET_STEPS", "value": "7"}]], 7, id="behind a sidecar"),
        pytest.param([[{"name": "TARGET_STEPS", "value": "few"}]], math.inf, id="no number"),
        pytest.param([[{"name": "TARGET_STEPS", "valueFrom": {}}]], math.inf, id="from elsewhere"),
    ],
)
def test_a_training_ends_after_the_steps_that_its_launcher_names(
    environments: list[list[dict[str, object]] | None], steps: float
) -> None:
    containers = [{"name": "a"} if env is None else {"env": env} for env in environments]
    assert drivers.target_steps({"spec": {"containers": containers}}) == steps
