"""Bounds on what a tenant stores or prints, because reading it holds up every other job.

A look at one job costs at most 50 ms of CPU, and 15 ms more for each 1,000 workers of an allowed
size. Anybody with the role `edit` writes these texts, and what a launcher's or a worker's shell
prints is any text, too. What is beyond a bound counts as not readable. kube/meta bounds the fields
of an object before any of this.

What is kept between looks is bounded here as well, whatever field it is in: an object with more
counts as not readable, which is logged and counted. A job's ConfigMap and Role grow with the list
of hosts, and may take more for each worker that they name. What is longer is cut, so that it is
nothing that we wrote, and is put right like any other edit: a job whose ConfigMap were ignored
would keep quota that others want back.
"""

from typing import TypeVar

import msgspec

from mpijob_elastic.kube.meta import TooLarge

T = TypeVar("T")

# The largest size: a ConfigMap and a Role hold 1 MiB each. A larger one is a typing error, which
# must not become a million names.
MOST_WORKERS = 10_000
# What an int32 holds, as numbers of Kubernetes' and the operator's types are.
MOST_INT32 = 2**31 - 1
# Characters of kubexec.sh; the operator's has 200.
LONGEST_KUBEXEC = 4 * 2**10
# Bytes of JSON in the memory's annotation, expanded: 10,000 leaving workers with the longest names
# take 1.5 MiB.
LARGEST_MEMORY = 2 * 2**20
# Characters of a field manager, by the API server.
LONGEST_MANAGER = 128
# Bytes that are kept of a MPIJob or an object of a capability, and of the templates of all pods of
# a job.
LARGEST_FACTS = 64 * 2**10
# Bytes of one pod, of which a job has up to 10,000, and of its scheduling gates. What else it has
# beside the texts of its template is short.
LARGEST_POD, LARGEST_GATES = 8 * 2**10, 512
# Bytes that are kept of a job's ConfigMap or Role, compressed: for each worker that it names beside
# `LARGEST_FACTS`, and at most. List, hostfile and memory of 1,000 workers with the longest names
# take at most 73 KiB, and of any number 260 KiB, as the annotations of an object hold 256 KiB.
MORE_A_WORKER, LARGEST_CONFIG = 100, 320 * 2**10
# Bytes of JSON of our notices on an MPIJob, and bytes that its status, size and holds add later:
# both count in advance.
LONGEST_NOTICES, LATER = 16 * 2**10, 2**10
# Bytes that are kept of a MPIJob without these notices.
LARGEST_JOB = LARGEST_FACTS - LONGEST_NOTICES
# Containers of a worker that may hold its ranks, each of which takes an exec to look into.
MOST_CONTAINERS = 4
# Execs of a launcher that are looked at, for a job of any size and for the largest, and bytes that
# it prints for each. Each is a process of some 20 MiB, so no launcher holds 10,000.
FEWEST_EXECS, MOST_EXECS, BYTES_AN_EXEC = 64, 10_000, 100
# Characters of a shell script in a launcher's command, and words of a command.
LONGEST_SCRIPT, MOST_WORDS = 8 * 2**10, 1000

# What a text that is longer ends with, so that it is no text of ours.
CUT, _CUT_AT = "\n# cut\n", 2**10

_encoder = msgspec.json.Encoder(enc_hook=str)


def size(facts: object) -> int:
    """Return the bytes of facts, as they are bounded."""
    return len(_encoder.encode(facts))


def kept(facts: T, *, most: int = LARGEST_FACTS) -> T:
    """Return facts that may be kept. Raises `TooLarge` if they hold more than `most` bytes."""
    if size(facts) > most:
        raise TooLarge(
            f"more than {most:,} bytes of its texts would be kept; shorten its labels, annotations and names"
        )
    return facts


def notices(text: str) -> str:
    """Return notices that may be kept: as they are, or cut if they are longer."""
    return text if size(text) <= LONGEST_NOTICES else text[: LONGEST_NOTICES // 8]


def most_of_config(workers: int) -> int:
    """Return the bytes that may be kept of a ConfigMap or a Role that names so many workers."""
    return min(LARGEST_FACTS + MORE_A_WORKER * workers, LARGEST_CONFIG)


def cut(text: str) -> str:
    """Return a text that is too long as it is kept: its first lines tell the slots of a hostfile."""
    return text[:_CUT_AT] + CUT
