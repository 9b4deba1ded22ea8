"""What `get`, `watch` and the demo show of jobs.

reading -> snapshot -> report -> table, changes: the same facts, view and decision as the controller's, seen with the
user's own rights. Nothing here writes.
"""
