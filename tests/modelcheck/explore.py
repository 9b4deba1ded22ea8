"""Visit every world that can be reached, and check that it is safe, leads to the goal and comes to rest.

Breadth first, so the story told of a mistake is as short as can be.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from mpijob_elastic.decide.actions import Action, Look, TellUser, needs_notice
from tests.modelcheck import rules, surroundings
from tests.modelcheck.canonical import canonical
from tests.modelcheck.controller import Controller
from tests.modelcheck.world import Seen, Setup, World, first


class Mistake(AssertionError):
    """Something that must never happen, with the moves that lead to it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One way out of a world: where to, by what move, whether it happens in the end, whether it is a write of ours."""

    to: int
    name: str
    fair: bool
    ours: bool


@dataclass(kw_only=True)
class Graph:
    """All worlds by number, in the order of their distance from the first."""

    worlds: list[World]
    steps: list[list[Step]] = field(default_factory=list)
    parents: list[tuple[int, str]] = field(default_factory=lambda: [(-1, "")])

    def story(self, number: int) -> str:
        """The moves from the first world to this world, and this world."""
        names = []
        at = number
        while at > 0:
            at, name = self.parents[at]
            names.append(name)
        return "\n  ".join(["", *reversed(names)]) + f"\n  => {self.worlds[number]}"


def explore(
    setup: Setup,
    controller: Controller | None = None,
    *,
    most: int = 2_000_000,
    refuses: bool = False,
) -> Graph:
    """Return the graph of all worlds. Raises Mistake at the first unsafe world.

    refuses: the API server may refuse any write for good. Then any action of a plan, and any pair
    without a new decision, may be all that comes true.
    """
    controller = controller or Controller(setup=setup)
    start = canonical(first(setup))
    graph = Graph(worlds=[start])
    numbers = {start: 0}
    for number, world in enumerate(graph.worlds):  # grows meanwhile
        out: list[Step] = []
        for name, then, fair, ours, wrong in _ways(world, setup, controller, refuses=refuses):
            if wrong:
                raise Mistake(f"{wrong}:{graph.story(number)}\n  {name}")
            to = numbers.setdefault(then, len(numbers))
            if to == len(graph.worlds):
                graph.worlds.append(then)
                graph.parents.append((number, name))
            if to != number:
                out.append(Step(to=to, name=name, fair=fair, ours=ours))
        graph.steps.append(out)
        assert len(numbers) <= most, "the world is not bounded as it should be"
    return graph


def _ways(
    world: World, setup: Setup, controller: Controller, *, refuses: bool
) -> Iterator[tuple[str, World, bool, bool, str]]:
    for chosen in (
        _refused(controller.due(world, refuses=True)) if refuses else [controller.due(world)[:1]]
    ):
        then, wrong = world, ""
        for action in chosen:
            before, then = then, controller.step(then, action)
            wrong = (
                wrong
                or rules.after_our_move(before, action, then, setup=setup)
                or rules.in_every_world(then)
            )
        if chosen:
            yield (
                f"we: {', '.join(type(action).__name__ for action in chosen)}",
                canonical(then),
                True,
                True,
                wrong,
            )
    for move in surroundings.moves(world, setup):
        then = move.world
        if (
            setup.late_caches
            and world.late is None
            and Seen(then.job, then.pods, then.launcher) != world.seen
        ):
            then = then._replace(late=world.seen)
        yield (
            move.name,
            canonical(then),
            move.fair,
            False,
            rules.at_others_move(world, then, setup=setup),
        )


def _refused(due: Sequence[Action | Look]) -> Iterator[Sequence[Action | Look]]:
    """Yield what may be all that comes true of a plan; what needs its notice comes after that."""
    for size in (1, 2):
        for chosen in combinations(due, size):
            told = not any(isinstance(action, TellUser) for action in due) or isinstance(
                chosen[0], TellUser
            )
            if told or not any(needs_notice(action) for action in chosen):
                yield chosen


def check_goal(graph: Graph, controller: Controller) -> int:
    """Return the number of worlds at the goal.

    Raises Mistake if some world cannot lead to it by fair moves alone.
    """
    goals = [number for number, world in enumerate(graph.worlds) if _at_rest(world, controller)]
    back: list[list[int]] = [[] for _ in graph.worlds]
    for number, steps in enumerate(graph.steps):
        for step in steps:
            if step.fair:
                back[step.to].append(number)
    lead, todo = set(goals), list(goals)
    while todo:
        new = [number for number in back[todo.pop()] if number not in lead]
        lead.update(new)
        todo += new
    lost = next((number for number in range(len(graph.worlds)) if number not in lead), None)
    if lost is not None:
        raise Mistake(f"from here the goal cannot be reached any more:{graph.story(lost)}")
    return len(goals)


def _at_rest(world: World, controller: Controller) -> bool:
    return (
        world.late is None
        and rules.is_goal(world, setup=controller.setup)
        and not controller.due(world)
    )


def check_rest(graph: Graph) -> None:
    """Raises Mistake where we could write for ever although nobody edits and nothing breaks."""
    component = _components(graph)
    for number, steps in enumerate(graph.steps):
        for step in steps:
            if step.ours and component[number] == component[step.to]:
                raise Mistake(f"{step.name} comes again and again:{graph.story(number)}")


def _components(graph: Graph) -> list[int]:
    """The strongly connected component of each world, by fair moves (Tarjan's, without recursion)."""
    count = len(graph.worlds)
    order, low, component = [-1] * count, [0] * count, [-1] * count
    stack: list[int] = []
    visited = 0
    for root in range(count):
        if order[root] != -1:
            continue
        path = [(root, iter(graph.steps[root]))]
        order[root] = low[root] = visited
        visited += 1
        stack.append(root)
        while path:
            number, steps = path[-1]
            for step in steps:
                if not step.fair or component[step.to] != -1:
                    continue
                if order[step.to] == -1:
                    order[step.to] = low[step.to] = visited
                    visited += 1
                    stack.append(step.to)
                    path.append((step.to, iter(graph.steps[step.to])))
                    break
                low[number] = min(low[number], order[step.to])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[number])
                if low[number] == order[number]:
                    while component[number] == -1:
                        component[stack.pop()] = number
    return component
