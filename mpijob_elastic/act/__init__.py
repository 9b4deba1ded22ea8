"""The only place that writes to the API on a job's behalf: one write an action, each with its preconditions.

Read `writer` to know every write we ever make.
"""
