"""Upgrade a cluster that runs mpi-operator v0.2.3 with live jobs, and take that back.

`install` and `uninstall` use the parts about the definition of MPIJobs, the canary and our traces
on jobs. The definition before is recorded first (`record`). Each step can be interrupted and run
again. Pure decisions (`crd`, `findings`, `traces.find`, `conversion`) stand apart from reads and
writes of the API. Functions that are given a client raise `errors.KubeError`; `Refused` is one.
"""
