"""Benchmarks: the cost of changes of size, with us and with mpi-operator v0.3.0.

A benchmark measures and never asserts. Beside each figure stands its target and whether it was met.

    scale, throughput         a lab with operator, controller and webhook; times from the API server's audit log
    webhook                   load on the webhook itself, and what it adds to requests through the API server
    start, memory             a controller beside a fleet of jobs
    events                    one pod event through the watch cache, without a lab

`python -m bench --help` starts them; docs/records/performance.md explains each figure.
"""
