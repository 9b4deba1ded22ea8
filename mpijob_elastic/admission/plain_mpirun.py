"""What a plain mpirun job is told that could change its size: elastic.sh restarts its mpirun. Pure.

A plain job is told when it is created with annotations that only an elastic job has, and whenever
its size changes. No edit without these is told anything.
"""

from collections.abc import Sequence

from mpijob_elastic import names
from mpijob_elastic.admission.review import LONGEST_WARNING
from mpijob_elastic.model import elastic_line
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.launch_command import MPIRUN
from mpijob_elastic.model.mpijob import Container, MPIJob

# Characters of the advice: an API server cuts a warning, and other words stand before the advice.
_LONGEST = LONGEST_WARNING - 40


def advice(job: MPIJob, program: str) -> str:
    """Return what to type so that a job whose launcher starts that mpirun can change its size."""
    containers = job.containers(names.ROLE_LAUNCHER)
    first = containers[0] if containers else Container()
    return _advice(program, first.words())


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
