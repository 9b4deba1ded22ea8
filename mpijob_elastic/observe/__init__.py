"""From watch events to an immutable view of a job.

`facts_*` and `nodes` decode an object's JSON into the few fields we use, `caches` keep them by job,
`views` makes a job's view.
Nothing here decides or writes.
"""
