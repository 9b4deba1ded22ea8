"""What a plain mpirun job is told that could change its size: elastic.sh restarts its mpirun. Pure.

A plain job is told when it is created with annotations that only an elastic job has, and whenever
its size changes. No edit without these is told anything.

A new job is also told if its mpirun is certainly hydra, that of MPICH or Intel MPI, and is to read
the operator's hostfile: it ends with an error at the first `slots=`.
"""

from collections.abc import Iterator, Sequence

from mpijob_elastic import names
from mpijob_elastic.admission.review import LONGEST_WARNING
from mpijob_elastic.model import elastic_line, mpirun_options
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.launch_command import MPIRUN
from mpijob_elastic.model.mpijob import Container, MPIJob

# Characters of the advice: an API server cuts a warning, and other words stand before the advice.
_LONGEST = LONGEST_WARNING - 40
# What only hydra has: names of the program, and an option.
_HYDRA, _HYDRA_OPTION = frozenset({"mpiexec.hydra", "mpiexec.mpich", "mpirun.mpich"}), "f"


def advice(job: MPIJob, program: str) -> str:
    """Return what to type so that a job whose launcher starts that mpirun can change its size."""
    return _advice(program, _command(job))


def _command(job: MPIJob) -> Sequence[str]:
    containers = job.containers(names.ROLE_LAUNCHER)
    first = containers[0] if containers else Container()
    return first.words()


def of_hydra(job: MPIJob, facts: JobFacts) -> Iterator[str]:
    """Yield which option of a new job's hydra names a file that it cannot read."""
    if facts.elastic or facts.policy.mpi_variables is False or not plain_program(facts):
        return
    found = mpirun_options.read(_command(job))
    if found is None or not _is_hydra(found):
        return
    for option in found.options:
        if option.name in mpirun_options.HOST_FILES and option.value == names.HOSTFILE_PATH:
            yield (
                f"MPICH and Intel MPI cannot read {names.HOSTFILE_PATH}; "
                f"write {names.HYDRA_HOSTFILE_PATH}"
            )


def _is_hydra(found: mpirun_options.Mpirun) -> bool:
    options = {option.name for option in found.options}
    return found.program.rpartition("/")[2] in _HYDRA or _HYDRA_OPTION in options


def of_size(job: MPIJob, facts: JobFacts) -> tuple[str, ...]:
    """Return the advice for a plain mpirun job whose size changes; () for any other job."""
    program = plain_program(facts)
    return (advice(job, program),) if program else ()


def of_scale(facts: JobFacts) -> tuple[str, ...]:
    """Return the same where the job's command is not known, so with a command of that form."""
    program = plain_program(facts)
    return (_advice(program, ()),) if program else ()


def plain_program(facts: JobFacts) -> str:
    """Return the mpirun of a job that could have elastic.sh; "" for any other job."""
    launch = facts.launch
    if launch is None or launch.program not in MPIRUN or facts.policy.enabled is False:
        return ""
    return launch.program


def _advice(program: str, command: Sequence[str]) -> str:
    said = f"{program} keeps its size, unless elastic.sh starts it: "
    return said + elastic_line.field(command, longest=_LONGEST - len(said))
