"""Random histories of one and of three jobs in a queue: no pod runs without quota, and no job keeps it for nothing."""

from random import Random

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import LauncherPhase
from tests.product.capabilities.kueue.sharing import Sharing, is_suspended, runs, workloads
from tests.queues import BASE

STEPS = 40


# A smaller seed is no simpler history.
@settings(phases=(Phase.explicit, Phase.generate))
@given(seed=st.integers(0, 2**40), jobs=st.sampled_from((1, 3)))
def test_quota_is_used_once_and_comes_to_rest(seed: int, jobs: int) -> None:
    random = Random(seed)
    world = Sharing(random, jobs=jobs, quota=random.randint(3, 7))
    if seed % 2:
        world.stumble()
    for _ in range(STEPS):
        world.step()
    world.rest()
    for index, view in enumerate(world.jobs):
        wrong = at_rest(view)
        assert not wrong, world.story(f"seed {seed}: job {index} {wrong}")


def at_rest(view: JobView) -> str:
    """Return what is wrong with a job to which nothing more happens; "" if nothing is.

    Kueue has granted what it could: a base that still waits finds no quota.
    """
    found = workloads(view)
    held = {name for name, one in found.items() if one.reserved and not one.finished}
    if view.facts.finished or is_suspended(view):
        return "does not run and keeps quota" if held else ""
    if BASE not in found:
        return "asks for nothing"
    if BASE not in held:
        return "runs without quota" if any(map(runs, view.pods)) else ""
    if view.launcher is None or view.launcher.phase is not LauncherPhase.STARTED:
        return "keeps quota and does not train"
    have = {pod for pod in view.wanted_names if pod in held} | {
        *view.wanted_names[: found[BASE].workers]
    }
    listed = {*view.published_pods}
    return "" if listed == have else f"has quota for {sorted(have)} and lists {sorted(listed)}"
