"""Benchmarks: what changes of size cost, beside an operator that is elastic itself where its binary is at hand.

Nothing here asserts: it measures, and says beside each figure which target it has and whether that was met.

    scale, throughput         a lab with operator, controller and webhook; times from the API server's audit log
    webhook                   load on the webhook itself, and what it adds to requests through the API server
    start, memory             a controller beside a fleet of jobs
    events                    one pod event through the watch cache, without a lab

`python -m bench --help` starts them; docs/performance.md says how each figure is come by.
"""
