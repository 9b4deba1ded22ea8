"""The facts of a job as typed, immutable values; past this border nothing is an untyped dict.

`job` has the view, the only input of a decision. The view is made of `job_facts`, `pod` and
`memory`, and of what is asked of capabilities (`CapabilityFacts`). `mpijob` reads the JSON before
that, `policy` its annotations, and `bounds` limits how much may be kept.
"""
