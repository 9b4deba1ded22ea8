"""`python -m lab.demo`: `kubectl edit mpijob` becomes elastic, shown step by step on a real control plane.

stage (a lab with everything in it) -> play (edits, with `mpijob-elastic watch` beside them, and the
check of each). Pods are pretended (see lab), so no training runs: a rank is a stand-in, but a real
process of its pod, started and ended as Horovod would (see lab.ranks).
"""
