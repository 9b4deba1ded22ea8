"""The variables that the webhook gives a launcher: any mpirun starts its ranks in the workers by them."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import jsonpatch
import pytest

from lab.operator import objects
from lab.operator.objects import PLAIN, mpi_job
from mpijob_elastic.admission import review
from tests.driver.world import PATIENCE, World, world_of
from tests.product.webhook.answers import knowing
from tests.product.webhook.objects import body
from webhook.rules import handlers

HOSTS = ("w0", "w1")
# Which rank is said by each implementation, and that it may run as root. A rank lives for a second,
# because those of trainings live for long: what mpirun makes of others is not asked here.
RANK = 'echo "$(hostname) ${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" >> "$NOTES"; sleep 1'
ROOT_MAY = [
    f"{prefix}_ALLOW_RUN_AS_ROOT{suffix}=1"
    for prefix in ("OMPI", "PRTE")
    for suffix in ("", "_CONFIRM")
]


@pytest.fixture(params=["open-mpi", "mpich"])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    with world_of(tmp_path, shell_name="dash", mpi=request.param) as made:
        made.add(*HOSTS)
        (tmp_path / "hostfile").write_text("".join(f"{host} slots=2\n" for host in HOSTS))
        (tmp_path / "hostfile.hydra").write_text("".join(f"{host}:2\n" for host in HOSTS))
        yield made


def environment(command: Sequence[str]) -> dict[str, str]:
    """The environment of the launcher of a job."""
    job = mpi_job(command=command)
    pod = objects.launcher(job)
    table = handlers.mutating(knowing(job))
    patch = handlers.answer(review.parse(body(pod)), table).verdict.patch
    [first] = jsonpatch.apply_patch(pod, patch)["spec"]["containers"]
    # The workers are no pods: they have the interfaces of this machine.
    return {one["name"]: one.get("value", "").replace("eth0", "lo") for one in first["env"]}


def variables(folder: Path) -> list[str]:
    """That of a plain job whose files are in this folder."""
    found = [f"{name}={value}" for name, value in environment(PLAIN).items()]
    text = "\n".join(found).replace("/etc/mpijob-elastic/", f"{folder}/")
    return text.replace("/etc/mpi/", f"{folder}/").split("\n")


def ran(world: World, *settings: str) -> list[str]:
    """Run four ranks that nobody tells where to run; return where each ran."""
    mpirun = f"{world.mpi.folder}/{world.mpi.command[0]}"
    notes = world.folder / "notes"
    own = [f"NOTES={notes}", f"TMPDIR={world.folder}/temporary", *ROOT_MAY]
    words = ["exec", "env", *own, *settings, mpirun, "-np", "4", "sh", "-c", RANK]
    new = world.folder / "begin.new"
    new.write_text(shlex.join(words) + "\n")
    new.rename(world.folder / "begin")
    assert world.launcher.wait(timeout=PATIENCE) == 0, world.log
    return sorted(notes.read_text().splitlines())


def test_ranks_run_in_the_workers(world: World) -> None:
    assert ran(world, *variables(world.folder)) == ["w0 0", "w0 1", "w1 2", "w1 3"]


def test_with_the_variables_of_the_operator_alone_they_run_in_the_launcher(world: World) -> None:
    operators = [
        f"OMPI_MCA_plm_rsh_agent={world.folder}/kubexec.sh",
        f"OMPI_MCA_orte_default_hostfile={world.folder}/hostfile",
        # As many slots as ranks: else Open MPI refuses on a machine of two cores.
        "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe",
    ]
    hosts = {line.split()[0] for line in ran(world, *operators)}
    assert not hosts.intersection(HOSTS)


@pytest.mark.parametrize("mpi", ["open-mpi", "mpich"])
def test_elastic_sh_replaces_what_names_the_operators_files(
    mpi: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file is in /etc/mpi here, so a variable that is not replaced fails the start."""
    for name, value in environment(["/etc/mpi/elastic.sh", "--", "mpirun"]).items():
        monkeypatch.setenv(name, value)
    with world_of(tmp_path, shell_name="dash", mpi=mpi) as world:
        world.add(*HOSTS)
        world.publish(*HOSTS)
        world.start()
        world.runs_on(*HOSTS, start=1)
        assert sorted(world.workers_of_ranks().values()) == [*HOSTS]
