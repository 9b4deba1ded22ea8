"""The admission server: it adds discover_hosts.sh to the operator's objects, and checks annotations and sizes early.

A request goes through a pure function (rules/) to its answer; no API call is made on the way,
but for evictions, which a capability answers at a path of its own.
"""
