# SPDX-License-Identifier: GPL-2.0
"""Signals that ask the program to end."""
import contextlib
import signal

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Interrupted(BaseException):
    """A signal asks the program to end. No procedure may take it for an error."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number


def ignore():
    """Ignore the signals from now on."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def interrupt(number, _):
    """Handle the first signal. No other one may interrupt what it leads to."""
    ignore()
    raise Interrupted(number)


@contextlib.contextmanager
def handled(action):
    """Have @action handle the signals in the block, but for those that are ignored, as nohup has
    SIGHUP ignored."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number, former in before.items():
        if former != signal.SIG_IGN:
            signal.signal(number, action)
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def uninterrupted():
    """Have no signal interrupt the block, which restores what was there before."""
    return handled(signal.SIG_IGN)


@contextlib.contextmanager
def deferred():
    """Have a signal that comes in the block take effect after it, unless the block fails."""
    came: list[int] = []
    with handled(lambda number, _: came.append(number)):
        yield
    for number in came[:1]:
        signal.raise_signal(number)


def interruptible():
    """Raise Interrupted in the block if a signal asks the program to end."""
    return handled(interrupt)
