"""Bounds on what a tenant stores or prints, because reading it holds up every other job.

A look at one job costs at most 50 ms of CPU, and 15 ms more for each 1,000 workers of an allowed size. Anybody with the
role `edit` writes these texts, and what a launcher's or a worker's shell prints is any text, too. What is beyond a
bound counts as not readable. kube/cost bounds the fields of an object before any of this.
"""

# The largest size: a ConfigMap and a Role hold 1 MiB each. A larger one is a typing error, which must not become a
# million names.
MOST_WORKERS = 10_000
# Characters of kubexec.sh; the operator's has 200.
LONGEST_KUBEXEC = 4 * 2**10
# Bytes of JSON in the memory's annotation, expanded: 10,000 leaving workers with the longest names take 1.5 MiB.
LARGEST_MEMORY = 2 * 2**20
# Containers of a worker that may hold its ranks, each of which takes an exec to look into.
MOST_CONTAINERS = 4
# Execs of a launcher that are looked at, for a job of any size and for the largest, and bytes that it prints for each.
# Each is a process of some 20 MiB, so no launcher holds 10,000.
FEWEST_EXECS, MOST_EXECS, BYTES_AN_EXEC = 64, 10_000, 100
# Characters of a shell script in a launcher's command, and words of a command.
LONGEST_SCRIPT, MOST_WORDS = 8 * 2**10, 1000
