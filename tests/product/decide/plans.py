"""A plan of `decide` in words, and parts of a plan by themselves.

`does(view)` tells all that is to be done, in its order: "publish 0 1 (Draining); touch; delete
2:drained; wake 5". Pods go by their number, host names by number and incarnation (`1.r2`), times
are seconds from now on.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.decide import actions, config_map, decide, derive, next_memory
from mpijob_elastic.decide.state import JobState, Standing, WorkerState
from mpijob_elastic.model.job import JobView, parse_script
from mpijob_elastic.model.memory import Memory
from tests.builders import NOW
from tests.room_words import rooms, short


def does(view: JobView, *, now: float = NOW, but: str = "") -> str:
    """Tell what is due, and what wakes us; not what begins with a word of `but`, nor the looks of a job at rest."""
    plan = decide(view, now=now)
    writes = [words for action in plan.actions for words in _writes(view, action)]
    looks = [
        _leaving(look)
        for look in plan.looks
        if isinstance(look, actions.ProbeWorkers) and not look.published
    ]
    wakes = [] if plan.wake_at is None else [f"wake {_seconds(plan.wake_at - now)}"]
    told = [words for words in (*writes, *looks, *wakes) if words.split()[0] not in but.split()]
    return "; ".join(told) or "nothing"


def removals(view: JobView, *, now: float = NOW) -> tuple[actions.Removal, ...]:
    """Return the workers that are deleted, each with its reason."""
    due = decide(view, now=now).actions
    return tuple(
        one
        for action in due
        if isinstance(action, actions.DeleteWorkers)
        for one in action.removals
    )


def notes(view: JobView, *, now: float = NOW) -> list[actions.Note]:
    """Return what the plan tells the user, each with its reason and its words."""
    due = decide(view, now=now).actions
    return [
        *(one.note for one in removals(view, now=now)),
        *(note for action in due for note in action.notes),
    ]


def note(view: JobView, *, now: float = NOW) -> actions.Note:
    """Return the only thing that the user is told."""
    [told] = notes(view, now=now)
    return told


def change(view: JobView, *, now: float = NOW) -> actions.WriteConfig:
    """Return the write of the host list that is due."""
    found = written(view, now=now)
    assert found is not None
    return found


def written(view: JobView, *, now: float = NOW) -> actions.WriteConfig | None:
    assert view.config is not None
    return config_map.write(derive(view, now=now), view.config)[0]


def remembered(view: JobView, *, now: float = NOW) -> Memory:
    """Return the memory to write although the list stays."""
    assert view.config is not None
    state = derive(view, now=now)
    script, hostfile = view.config.facts.script or "", view.config.facts.hostfile
    same = actions.WriteConfig(
        ref=view.config.ref, script=script, hostfile=hostfile, memory=view.memory
    )
    records = next_memory.records(state, same)
    return next_memory.memory(state, view.config, same, records)


def given_up(view: JobView, *, now: float = NOW) -> tuple[str, ...]:
    """Return the workers that are given up."""
    return those(view, lambda worker: worker.standing is Standing.GIVEN_UP, now=now)


def those(
    view: JobView, holds: Callable[[WorkerState], bool], *, now: float = NOW
) -> tuple[str, ...]:
    """Return the workers of which this holds."""
    return tuple(worker.name for worker in state(view, now=now).workers if holds(worker))


def state(view: JobView, *, now: float = NOW) -> JobState:
    return derive(view, now=now)


def _seconds(seconds: float) -> str:
    return f"{round(seconds, 3):g}" if abs(seconds) < 1e6 else f"at {seconds}"


def _pods(found: Iterable[str]) -> str:
    return " ".join(map(short, found)) or "nobody"


def _gates(found: Iterable[actions.Gated]) -> str:
    return " ".join(
        short(pod.ref.name) + (f"[{','.join(pod.kept)}]" if pod.kept else "") for pod in found
    )


def _leaving(look: actions.ProbeWorkers) -> str:
    return f"{'tell' if look.drained else 'probe'} {_pods(pod.name for pod in look.workers)}"


def _writes(view: JobView, action: actions.Action) -> Iterator[str]:
    if isinstance(action, actions.WriteConfig):
        yield f"{_list(view, action)}{f' ({reasons})' if (reasons := _reasons(action)) else ''}"
    else:
        yield _WORDS[type(action)](action)


def _reasons(action: actions.WriteConfig) -> str:
    return " ".join(note.reason for note in action.notes)


def _list(view: JobView, action: actions.WriteConfig) -> str:
    """Tell the list that is published; where it stays, what else changes."""
    published = parse_script(action.script)
    assert published is not None
    hosts = published.hosts
    if action.reminds:
        assert (action.added, action.removed) == ((), ())
        assert list(hosts) == list(view.host_of.values())
        return f"remind of {_pods(action.reminds)} by {short(published.reminder)}"
    listed = dict.fromkeys(map(names.pod_of, hosts))
    assert action.added == tuple(pod for pod in listed if pod not in view.host_of)
    assert action.removed == tuple(pod for pod in view.host_of if pod not in listed)
    assert set(action.lost) <= set(action.removed)
    if action.script != view.config.facts.script:
        lost = f", lost {_pods(action.lost)}" if action.lost else ""
        reminder = f", reminder {short(published.reminder)}" if published.reminder else ""
        return f"publish {_pods(hosts)}{reminder}{lost}"
    if action.hostfile != view.config.facts.hostfile:
        return f"hostfile {_pods(line.split()[0] for line in action.hostfile.splitlines())}"
    fields = (
        name
        for name in Memory.__struct_fields__
        if getattr(action.memory, name) != getattr(view.memory, name)
    )
    return f"remember {' '.join(fields)}"


_WORDS: Mapping[type, Callable[[Any], str]] = {
    actions.WriteRole: lambda write: f"allow {_pods(write.exec_names)}",
    actions.RefreshLauncher: lambda touch: f"touch again {touch.again}" if touch.again else "touch",
    actions.DeleteWorkers: lambda found: (
        f"delete {' '.join(f'{short(one.worker.name)}:{one.outcome}' for one in found.removals)}"
    ),
    actions.ReleaseWorker: lambda found: f"release {short(found.ref.name)}",
    actions.DeleteLauncher: lambda found: (
        f"delete launcher{', suspended' if found.suspends else ''}"
    ),
    actions.EndLauncher: lambda _: "end launcher",
    actions.EndExecs: lambda found: f"kill {' '.join(str(one.pid) for one in found.execs)}",
    actions.Ungate: lambda found: (
        f"{'start' if found.note.reason == 'Admitted' else 'ungate'} {_gates(found.pods)}"
        + "".join(f" on {one}" for one in found.adds)
    ),
    actions.TellUser: lambda told: (
        f"say {' '.join(line.partition(':')[0] for line in told.text.splitlines()) or 'nothing more'}"
    ),
    actions.WriteSelector: lambda _: "restore selector",
    **{kind: say for words in rooms() for kind, say in words.plan.items()},
}
