"""From watch events to an immutable view of a job.

`facts_*` and `nodes` decode an object's JSON into the few fields that we use, `caches` keeps these
facts by job, and `views` makes a job's view. Beside the cached objects, `shared_texts` keeps each
text of a pod template once, `unreadable` the objects that cannot be read, and `worker_ends` the
last words of workers. Nothing here decides or writes.
"""
