"""From watch events to an immutable view of a job.

`facts_*` and `nodes` decode an object's JSON into the few fields that we use, `caches` keeps these
facts by job, and `views` makes a job's view. Nothing here decides or writes.
"""
