"""The targets of all figures; docs/records/performance.md explains them."""

from bench.figures import Target

# A change of size, from the edit. Milliseconds.
ROLE = Target(limit=20)
SURPLUS_DELETED_12_TO_2 = Target(limit=200)
SCRIPT_12_TO_2 = Target(limit=80)
# 3→1 while ranks run that end by themselves. Seconds, and ranks.
DRAINED = Target(limit=5)
RANKS_KILLED = Target(limit=0)
# A job that really trains: from the edit until all ranks train, and from the host list's change
# until the launcher sees it (95th percentile). Seconds.
TRAINED = {"3→1": Target(limit=5), "1→3": Target(limit=8)}
VISIBLE = Target(limit=2)
# Changes of the size that training did not follow.
NONE_LOST = Target(limit=0)
# Writes of a change of size, without Events and deletions of pods.
WRITES = Target(limit=3)
# 200 jobs of 10 workers, in jobs per second.
JOBS_A_SECOND = Target(limit=40, floor=True)
# A pod event: decoded, cached, its job queued. Microseconds.
POD_EVENT = Target(limit=30)
# Reviews per second of the webhook's CPU time, that is, on a core.
REVIEWS = Target(limit=2_000, floor=True)
# Time that the webhook adds to the 99th percentile of requests. Milliseconds.
ADDED = Target(limit=10)
# CPU of a look into a worker that tells how far it is, more than that of the build before. Percent.
MORE_OF_A_LOOK = Target(limit=5)
