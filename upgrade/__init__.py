"""Upgrade a cluster that runs mpi-operator v0.2.3 with live jobs, and take the upgrade back.

The state before is recorded first (`record`). Each step can be interrupted and run again. Pure decisions (`crd`,
`findings`, `job_impact`, `operators`, `traces`, `conversion`) stand apart from reads and writes of the API. The
upgrade uses `install` and the readers of `observe`; it never acts as a second controller. Functions that are given a
client raise `errors.KubeError`; `Refused` is one.
"""
