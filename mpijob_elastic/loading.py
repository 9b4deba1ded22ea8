"""Import a module while a command runs."""

import gc
import sys
from importlib import import_module
from types import ModuleType


def load(name: str) -> ModuleType:
    """Return the module of this name, imported while Python looks for no unused objects.

    The imports of `get` make over 100,000 objects that stay until the process ends. To look through
    them again and again, and once more at the end, took a sixth of its time, so they are taken out
    of all later looks. Where the module is there already, nothing is taken out, or a program that
    asks for it again and again would never free what it no longer uses. Raises ImportError.
    """
    if name in sys.modules:
        return import_module(name)
    looks = gc.isenabled()
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.freeze()
        if looks:
            gc.enable()
