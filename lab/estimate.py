"""How long the builds that are left will take, by how long those took that have ended."""

# Of all builds: the first ones are short, and tell of the network more than of the machine.
LEAST = 0.2


def left(*, done: int, everything: int, took: float, elapsed: float) -> int | None:
    """Return in how many seconds everything is built; None if nobody can know.

    done: what the builds that have ended cost, of `everything`; only how they compare counts. took: seconds from
    the beginning until the last of these ended. elapsed: seconds from the beginning until now.
    """
    if done < everything * LEAST:
        return None
    seconds = round(took * everything / done - elapsed)
    return seconds if seconds > 0 else None
