"""Writes to the API on behalf of a job, and looks by exec: one write for each action, with its preconditions.

`writer` has every such write; `events` sends Events beside it. Install, upgrade, the webhook's
certificates and the lease write on their own (docs/writes.md has the table of all writes).
"""
