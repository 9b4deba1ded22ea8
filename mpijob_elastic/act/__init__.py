"""Writes to the API on behalf of a job, which nothing else does: one write an action, each with its preconditions.

`writer` has every such write; Events go beside it. Install, upgrade, the webhook's certificates and the lease write on
their own (docs/security.md has the table of all writes).
"""
