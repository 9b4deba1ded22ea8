"""The error that ends a lab command with a message instead of a traceback."""


class LabError(Exception):
    """Says what was wrong, where, what is allowed, and what to do next."""
