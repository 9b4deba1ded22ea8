"""The facts of a job as typed, immutable values; past this border nothing is an untyped dict. Begin with `job`."""
