"""Events of a controller, kept instead of sent."""

from random import Random

from mpijob_elastic.act.events import Events
from mpijob_elastic.act.gate import Gate
from mpijob_elastic.decide.actions import Note
from mpijob_elastic.model.job import JobView
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW


class Told(Events):
    """Keeps the notes."""

    def __init__(self, gate: Gate, metrics: Metrics) -> None:
        super().__init__(gate, metrics=metrics, instance="test", now=lambda: NOW, random=Random(1))
        self.notes: list[str] = []

    def emit(self, view: JobView, note: Note) -> None:
        self.notes.append(note.reason)
