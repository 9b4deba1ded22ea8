"""Tell mpijob-elastic how far a training with Lightning is; docs/progress.md explains it.

Copy this file and progress.py beside your program:

    trainer = Trainer(callbacks=[LightningProgress(batch=32)], ...)
"""

import time
from math import isfinite
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from progress import Progress


class LightningProgress(Callback):
    """Writes a line after each step of the optimizer, and notes each checkpoint that was written."""

    def __init__(self, batch: int) -> None:
        """batch: samples of a rank in a batch."""
        self.batch = batch
        self.step = 0
        self.began = self.forward = self.own = 0.0
        self.saves = False

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        total = trainer.estimated_stepping_batches
        steps = int(total) if isfinite(total) else 0
        self.progress = Progress(steps, writes=trainer.local_rank == 0)
        self.progress.begin()
        self.step = trainer.global_step

    def on_train_batch_start(self, trainer: Trainer, *_: Any) -> None:
        self._note_checkpoint()
        self.forward = time.time()
        self.began = self.began or self.forward

    def on_before_backward(self, *_: Any) -> None:
        # DDP's allreduce is part of backward().
        self.own += time.time() - self.forward

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        if trainer.global_step == self.step:  # gradients are accumulated
            return
        self.step, ranks = trainer.global_step, trainer.world_size
        samples = self.batch * trainer.accumulate_grad_batches * ranks
        self.progress.step(self.step, samples=samples, ranks=ranks, began=self.began, own=self.own)
        self.began = self.own = 0.0

    def on_save_checkpoint(self, *_: Any) -> None:
        self.saves = True

    def on_fit_end(self, *_: Any) -> None:
        self._note_checkpoint()

    def _note_checkpoint(self) -> None:
        """Lightning calls us before it writes a checkpoint, and goes on once it has."""
        if self.saves:
            self.progress.saved()
        self.saves = False
