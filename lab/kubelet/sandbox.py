"""A sandbox for each pod."""


def sandboxes_work() -> bool:
    """Tell."""
    return False
