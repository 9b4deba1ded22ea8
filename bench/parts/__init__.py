"""The parts of the benchmark, as the command line names them.

Each runs in its own lab and returns figures.
"""
