"""Tell mpijob-elastic how far a training with Keras is; docs/progress.md explains it.

Copy this file and progress.py beside your program, and put the callback last, behind the one that
saves after each epoch:

    model.fit(..., callbacks=[BackupAndRestore(folder), KerasProgress(batch=32)])
"""

import time
from typing import Any

from keras.callbacks import Callback
from progress import Progress


class KerasProgress(Callback):
    """Writes a line after each batch; the end of an epoch counts as saved."""

    def __init__(self, batch: int, *, ranks: int = 1, writes: bool = True) -> None:
        """batch: samples of a rank in a batch; writes: it is the first rank of its worker."""
        super().__init__()
        self.batch, self.ranks, self.writes = batch, ranks, writes
        self.before = self.done = 0
        self.began = 0.0

    def on_train_begin(self, logs: Any = None) -> None:
        steps, epochs = self.params["steps"] or 0, self.params["epochs"]
        self.progress = Progress(steps * epochs, writes=self.writes)
        self.progress.begin()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        # A restart begins with a later epoch.
        steps = self.params["steps"]
        self.before = epoch * steps if steps else self.done

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.began = time.time()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.done, samples = self.before + batch + 1, self.batch * self.ranks
        self.progress.step(self.done, samples=samples, ranks=self.ranks, began=self.began)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.progress.saved()
