"""The way in and out for a cluster that runs mpi-operator v0.2.3 with live jobs: look, apply, take back.

What it changes is recorded first (`record`), each step can be interrupted and run again, and pure decisions (`crd`,
`operators`, `adoption`, `traces`, `conversion`) stand apart from what reads and writes the API. It uses what `install`
does and what `observe` reads of a job; it never runs beside the controller as a second one.
"""
