"""The callbacks of docs/examples for Keras and Lightning, in a small training of the real library.

Neither library is installed with the others: pip install keras jax; pip install lightning.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mpijob_elastic.model.progress import VARIABLE, ProgressLine, parse

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
# What the libraries warn of is theirs.
pytestmark = [pytest.mark.campaign, pytest.mark.filterwarnings("ignore")]


class Ends(Exception):
    """The training is interrupted."""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the line, for the modules of the examples, which are imported anew."""
    monkeypatch.setenv(VARIABLE, f"{tmp_path / 'line'}")
    monkeypatch.setenv("KERAS_BACKEND", os.environ.get("KERAS_BACKEND", "jax"))
    monkeypatch.syspath_prepend(EXAMPLES)
    for name in ("progress", "progress_keras", "progress_lightning"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path / "line"


def line(file: Path) -> ProgressLine:
    text = file.read_text().strip()
    found = parse(f"alive {text}", asked_at=time.time())
    assert found, text
    return found


def test_keras(file: Path) -> None:
    keras = pytest.importorskip("keras")
    numpy = pytest.importorskip("numpy")
    callback = pytest.importorskip("progress_keras").KerasProgress

    def fit(*, ends_after: int) -> None:
        """Train 4 epochs of 5 steps; a step takes 0.1 s at least."""

        class Slow(keras.callbacks.Callback):  # type: ignore[misc,name-defined]
            steps = 0

            def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
                time.sleep(0.1)
                self.steps += 1
                if self.steps == ends_after:
                    raise Ends

        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        backup = keras.callbacks.BackupAndRestore(f"{file}.backup")
        model.fit(
            numpy.ones((40, 3)),
            numpy.ones((40, 1)),
            batch_size=8,
            epochs=4,
            verbose=0,
            callbacks=[Slow(), backup, callback(batch=8)],
        )

    with pytest.raises(Ends):
        fit(ends_after=13)
    # Step 13 was not told, because the training was interrupted before.
    stopped = line(file)
    assert (stopped.step, stopped.total, stopped.samples) == (12, 20, 8)
    assert stopped.kept >= 1.0
    assert 0.2 <= stopped.open < stopped.kept
    fit(ends_after=0)
    ended = line(file)
    assert (ended.step, ended.again, ended.open) == (20, 2, 0)
    assert ended.repeated == stopped.open
    assert ended.kept >= 2.0
    assert ended.first == stopped.first


def test_lightning(file: Path) -> None:
    lightning = pytest.importorskip("lightning")
    torch = pytest.importorskip("torch")
    callback = pytest.importorskip("progress_lightning").LightningProgress
    checkpoint = Path(f"{file}.checkpoint")

    class Model(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

        def training_step(self, batch: Any, _: int) -> Any:
            time.sleep(0.06)
            return (self.layer(batch[0]) ** 2).mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.01)

    class Interrupts(lightning.Callback):  # type: ignore[misc,name-defined]
        def __init__(self, *, after: int) -> None:
            self.after = after

        def on_train_batch_end(self, *_: Any) -> None:
            self.after -= 1
            if self.after == 0:
                raise Ends

    def fit(*, ends_after: int) -> None:
        """Train 2 epochs of 20 batches, of which two are a step; save after each epoch."""
        data = torch.utils.data.TensorDataset(torch.ones(80, 3))
        saves = lightning.pytorch.callbacks.ModelCheckpoint(
            checkpoint, save_last=True, save_on_train_epoch_end=True
        )
        trainer = lightning.Trainer(
            max_epochs=2,
            accelerator="cpu",
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            accumulate_grad_batches=2,
            callbacks=[callback(batch=4), saves, Interrupts(after=ends_after)],
        )
        last = checkpoint / "last.ckpt"
        loader = torch.utils.data.DataLoader(data, batch_size=4)
        trainer.fit(Model(), loader, ckpt_path=last if last.exists() else None)

    with pytest.raises(Ends):
        fit(ends_after=26)
    stopped = line(file)
    assert (stopped.step, stopped.total, stopped.samples) == (13, 20, 8)
    assert stopped.kept >= 1.2
    assert 0.36 <= stopped.open < stopped.kept
    # The time before backward().
    assert 120 <= stopped.own_ms <= stopped.step_ms
    fit(ends_after=0)
    ended = line(file)
    assert (ended.step, ended.again, ended.open) == (20, 3, 0)
    assert ended.repeated == stopped.open
    assert ended.kept >= 2.4
    assert ended.first == stopped.first
