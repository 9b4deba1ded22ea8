"""Jobs as `get`, `watch`, `explain` and the demo show them.

fetch, follow -> snapshot -> report -> table, changes: the controller's own facts, view and decision, read with the
user's own rights. Nothing here writes.
"""
