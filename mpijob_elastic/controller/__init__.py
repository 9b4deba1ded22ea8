"""The companion controller: the loop, and the process around it.

`process` keeps the caches warm and waits for the Lease. `reconcile` looks at one job: it makes the
view, decides, and writes. `recheck` decides again on live objects before an action that cannot be
taken back. `per_job_state` keeps facts of each job that no object holds.
"""
