# SPDX-License-Identifier: GPL-2.0
"""What is shown on stderr while a drive is measured."""
import time

from ssd_common.lines import Line


class Shown(Line):
    """A line that says what is done now; without a terminal a new one every EACH_S."""
    EACH_S = 10

    def __init__(self, quiet: bool):
        super().__init__(quiet)
        self.last = 0.0

    def due(self) -> bool:
        """Return true if it is time for a line."""
        least = self.AGAIN_S if self.terminal else self.EACH_S
        return not self.quiet and time.monotonic() - self.last >= least

    def __call__(self, text: str, now: bool = False):
        if self.quiet or not (now or self.due()):
            return
        self.last = time.monotonic()
        if self.terminal:
            self.put(self.fitted(text), "")
        else:
            self.put(f"ssdctl: {text}", "\n")
