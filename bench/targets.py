"""The targets, once; docs/performance.md says where each comes from."""

from __future__ import annotations

from bench.figures import Target

# A change of size, from the edit on. Milliseconds.
ROLE = Target(limit=20)
SURPLUS_DELETED_12_TO_2 = Target(limit=200)
SCRIPT_12_TO_2 = Target(limit=80)
# 3→1 while ranks run that end by themselves. Seconds, and ranks.
DRAINED = Target(limit=5)
RANKS_KILLED = Target(limit=0)
# A job that really trains: from the edit until so many ranks train, and from a ConfigMap's change until a touched pod
# sees it (95 of 100 times). Seconds.
TRAINED = {"3→1": Target(limit=5), "1→3": Target(limit=8)}
VISIBLE = Target(limit=2)
# Writes of a change of size without Events and without the deletion of each pod.
WRITES = Target(limit=3)
# 200 jobs of 10 workers, in jobs a second.
JOBS_A_SECOND = Target(limit=40, floor=True)
# One pod event: decoded, cached, its job put into the queue. Microseconds.
POD_EVENT = Target(limit=30)
# The controller's memory by the number of pods, in MiB.
MEMORY = {1_000: Target(limit=120), 10_000: Target(limit=200)}
# From the controller's start until /readyz says so, with 1,000 pods. Seconds.
READY = Target(limit=3)
# Reviews for each second of the webhook's CPU time, that is on one core.
REVIEWS = Target(limit=2_000, floor=True)
# What admission adds to the slowest of 100 requests. Milliseconds.
ADDED = Target(limit=10)
