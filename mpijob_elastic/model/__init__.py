"""The facts of a job as typed, immutable values; past this border nothing is an untyped dict.

`job` is the view, the only input of a decision. It is made of `job_facts`, `pod` and `memory`, and
of what capabilities know (`Known`). `mpijob` is the JSON before that, `policy` what its annotations
ask for, and `bounds` how much of it may be kept.
"""
