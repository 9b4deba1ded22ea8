"""Keeps a lab that is up: until a component ends by itself or nobody wants it; meanwhile does what it is asked."""

import os
import select
from collections.abc import Callable
from typing import NoReturn

from lab.children import Children
from lab.lifeline import DETACH
from lab.node.commands import Orders


class Stopped(BaseException):
    """The lab shall end."""


class HeldLifeline:
    """The supervisor's end of its lifeline: a process that wants the lab holds the other end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptors = [descriptor]

    def descriptors(self) -> list[int]:
        """Return what becomes readable when there is something to check."""
        return self._descriptors

    def check(self) -> None:
        """Raise Stopped if the lab was let down."""
        for descriptor in select.select(self._descriptors, [], [], 0)[0]:
            if os.read(descriptor, len(DETACH)) != DETACH:
                raise Stopped
            self._descriptors = []


def keep(children: Children, lifeline: HeldLifeline, orders: Orders, changed: Callable[[], None]) -> NoReturn:
    """Wait until a component ends (LabError) or the lab is to end (Stopped); `changed` is called after each order."""
    while True:
        with children.pidfds() as pidfds:
            readable = select.select([*lifeline.descriptors(), *orders.descriptors(), *pidfds], [], [])[0]
        lifeline.check()
        children.check()
        if set(orders.descriptors()) & set(readable):
            orders.take()
            changed()
