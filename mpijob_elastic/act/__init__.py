"""Writes to the API on behalf of a job, each with its preconditions, and looks by exec.

`writer` has a write for each action; `events` sends Events beside the writes. Install, upgrade, the
webhook's certificates and the lease write on their own (docs/writes.md has the table of all
writes).
"""
