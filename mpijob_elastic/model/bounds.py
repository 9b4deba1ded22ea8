"""Bounds on what a tenant stores or prints, because reading it holds up every other job.

A look at one job costs at most 50 ms of CPU, and 15 ms more for each 1,000 workers of an allowed
size. Anybody with the role `edit` may write these texts, and the shell of a launcher or a worker
may print any text, too. A text beyond its bound counts as unreadable. kube/meta bounds the fields
of an object before any of this.

Everything that is kept between looks is bounded here as well, whatever field it is in: an object
with more text counts as unreadable, which is logged and counted. A job's ConfigMap and Role grow
with the list of hosts, and may take more for each worker that they name. A longer text of theirs is
cut, so that it is no text of ours any more, and is put right like any other edit: a job whose
ConfigMap were ignored would keep quota that others want back.
"""

from typing import TypeVar

import msgspec

from mpijob_elastic.kube.meta import TooLarge

T = TypeVar("T")

# The largest size: a ConfigMap and a Role hold 1 MiB each. A larger size is a typing error, which
# must not become a million names.
MOST_WORKERS = 10_000
# The largest int32, the type of numbers in Kubernetes and in the operator.
MOST_INT32 = 2**31 - 1
# Bytes of a host in the acknowledgement of elastic.sh (model/acknowledgement), beside its
# name, which is there at most twice. So many hosts are read of any job: lost hosts stay there.
BESIDE_A_HOST, FEWEST_HOSTS = 32, 64
# The latest time that is believed, in seconds since the epoch: the year 5138. A deadline after it
# still has a date, because calendars end with the year 9999.
LATEST = 1e11
# Characters of kubexec.sh; the operator's script has 200.
LONGEST_KUBEXEC = 4 * 2**10
# Bytes of JSON in the memory's annotation, expanded: 10,000 leaving workers with the longest names
# take 1.5 MiB.
LARGEST_MEMORY = 2 * 2**20
# Characters of a field manager's name; the API server has this limit.
LONGEST_MANAGER = 128
# Bytes that are kept of an MPIJob or an object of a capability, and of the templates of all pods of
# a job.
LARGEST_FACTS = 64 * 2**10
# Bytes of one pod, of which a job has up to 10,000, and of its scheduling gates. The pod's other
# texts, apart from those of its template, are short.
LARGEST_POD, LARGEST_GATES = 8 * 2**10, 512
# Bytes that are kept of a job's ConfigMap or Role, compressed: for each worker that it names, in
# addition to `LARGEST_FACTS`, and at most. List, hostfile and memory of 1,000 workers with the
# longest names take at most 73 KiB, and those of any number of workers 260 KiB, because the
# annotations of an object hold 256 KiB.
MORE_A_WORKER, LARGEST_CONFIG = 100, 320 * 2**10
# Bytes of JSON of our notices on an MPIJob, and bytes that its status, size and holds add later:
# both count in advance.
LONGEST_NOTICES, LATER = 16 * 2**10, 2**10
# Bytes that are kept of an MPIJob without these notices.
LARGEST_JOB = LARGEST_FACTS - LONGEST_NOTICES
# Containers of a worker that may hold its ranks; a look takes an exec into each.
MOST_CONTAINERS = 4
# Execs of a launcher that are looked at, for a job of any size and for the largest job, and bytes
# that the look prints for each exec. An exec is a process of some 20 MiB, so no launcher holds
# 10,000.
FEWEST_EXECS, MOST_EXECS, BYTES_AN_EXEC = 64, 10_000, 100
# Characters of a shell script in a launcher's command, and words of a command.
LONGEST_SCRIPT, MOST_WORDS = 8 * 2**10, 1000

# A text that is too long is cut at so many characters and ends with `CUT`, so that it is no text of
# ours.
CUT, _CUT_AT = "\n# cut\n", 2**10

_encoder = msgspec.json.Encoder(enc_hook=str)


def size(facts: object) -> int:
    """Return the size of facts in bytes, by which they are bounded."""
    return len(_encoder.encode(facts))


def kept(facts: T, *, most: int = LARGEST_FACTS) -> T:
    """Return the facts if they may be kept. Raises `TooLarge` for more than `most` bytes."""
    if size(facts) > most:
        raise TooLarge(
            f"more than {most:,} bytes of its texts would be kept; "
            "shorten its labels, annotations and names"
        )
    return facts


def notices(text: str) -> str:
    """Return the notices as they may be kept: cut if they are too long."""
    return text if size(text) <= LONGEST_NOTICES else text[: LONGEST_NOTICES // 8]


def most_of_config(workers: int) -> int:
    """Return the bytes that may be kept of a ConfigMap or a Role that names so many workers."""
    return min(LARGEST_FACTS + MORE_A_WORKER * workers, LARGEST_CONFIG)


def cut(text: str) -> str:
    """Return a text cut to its first lines, which tell the slots of a hostfile."""
    return text[:_CUT_AT] + CUT
