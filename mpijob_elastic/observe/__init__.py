"""From watch events to one immutable view of a job.

`facts_*` decode an object's JSON straight into the few fields we use; `caches` keep them and know which job they belong
to; `views` puts one job together. Nothing here decides or writes.
"""
