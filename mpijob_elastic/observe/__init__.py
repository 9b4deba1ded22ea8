"""From watch events to an immutable view of a job: facts, caches, view. Nothing here decides or writes."""
