# SPDX-License-Identifier: GPL-2.0
"""What is shown on stderr while a drive is measured."""
import time

from ssd_probe.run import Line


class Shown(Line):
    """A line that says what is done now; without a terminal a new one every EACH_S."""
    EACH_S = 10

    def __init__(self, quiet: bool):
        super().__init__(quiet)
        self.last = 0.0

    def __call__(self, text: str, now: bool = False):
        moment = time.monotonic()
        least = self.AGAIN_S if self.terminal else self.EACH_S
        if self.quiet or (moment - self.last < least and not now):
            return
        self.last = moment
        if self.terminal:
            self.put(self.fitted(text), "")
        else:
            self.put(f"ssdctl: {text}", "\n")
