"""The admission server: it patches the operator's objects, and checks jobs early.

It adds discover_hosts.sh to the operator's objects, and checks annotations and sizes. A request
goes through a pure function (rules/) to its answer. No API call is made on the way, except for
evictions, which a capability answers at a path of its own.
"""
