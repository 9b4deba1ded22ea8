"""Words for the history."""

from dataclasses import replace
from random import Random

from mpijob_elastic import names
from mpijob_elastic.capabilities.history.changes import Sized
from mpijob_elastic.decide.actions import TellUser
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import SizeChange
from tests.builders import NOW, but
from tests.room_words import Words


def history(view: JobView, random: Random) -> JobView:
    """A job whose size somebody set, perhaps after its list was published."""
    if view.config:
        scale = SizeChange(before=0, after=random.choice([view.replicas, 1, 4]), at=NOW - 60)
        view = but(view, config=but(view.config, memory=but(view.memory, scale=scale)))
    change = random.choice(
        ["", "x", '{"at":999990.0,"cause":"user","by":"kubectl","from":1,"to":4}']
    )
    sized = Sized(
        by=random.choice(["", "kubectl-edit"]), at=random.choice([0.0, NOW - 5]), change=change
    )
    return but(view, sized=sized)


def _marked(view: JobView, action: TellUser) -> JobView:
    sized = view.facts.of(Sized)
    if sized is None or not action.marks:
        return view
    marks = {names.PHASE: sized.phase, names.CHANGE: sized.change, **action.marks}
    return but(view, sized=replace(sized, phase=marks[names.PHASE], change=marks[names.CHANGE]))


WORDS = Words(
    asked={"sized": lambda _, sized: {Sized: sized}}, done={TellUser: _marked}, draw=history
)
