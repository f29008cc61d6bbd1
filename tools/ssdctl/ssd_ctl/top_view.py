# SPDX-License-Identifier: GPL-2.0
"""The terminal view of `ssdctl top`."""
import contextlib
import curses
import os
import sys
import time

from ssd_common.output import is_terminal
from ssd_ctl import UsageError
from ssd_ctl.top_lines import DIM, HEAD, PLAIN, TITLE, WARNING, Line, lines_of
from ssd_ctl.top_sample import Snapshot, Watch

KEYS = "q quit   p pause   h help"
PAUSED = "PAUSED   p continue   q quit   h help"
ESCAPE = 27
# Smaller ones show only a part.
LEAST_HEIGHT = 3
HELP = """ssdctl top

q, Esc   quit
p        pause the view; counting goes on
h, ?     this help; any key leaves it

IOPS, MB/s   requests and data that completed in the last interval
mean ms      of these, from allocation of the request to completion
queued       requests in the scheduler, by direction if it tells
at drive     requests that the driver has
latency      percentiles of requests: "p99 3.2ms" means that 99 % took
             less than 3.2 ms. A figure is at most 6 % too high.
  total      from the submission of the first bio to completion
  queue      of that, until the driver gets it: waiting for a tag, and
             in the scheduler
  drive      from there on: the driver and the drive
scheduler    with the tunables that differ from the default, which is
             in brackets
below        what only this scheduler shows; see ssdctl(8)"""


class View:
    """A curses window with the view of a drive."""

    def __init__(self, screen, watch: Watch, interval: float):
        self.screen, self.watch, self.interval = screen, watch, interval
        self.before: Snapshot = watch.first
        self.shown: tuple[dict, dict] | None = None
        self.paused = self.helping = False
        self.next = time.monotonic() + interval
        self.styles = {PLAIN: curses.A_NORMAL, TITLE: curses.A_REVERSE, HEAD: curses.A_BOLD,
                       DIM: curses.A_DIM, WARNING: curses.A_BOLD}
        screen.nodelay(False)

    def take(self):
        """Take the figures of the interval that ends now."""
        after = self.watch.snapshot()
        figures = self.watch.figures(self.before, after)
        self.shown = figures, self.before.files if not figures["former_scheduler"] else {}
        self.before = after

    def content(self, width: int, height: int) -> list[Line]:
        """Return what fills the window."""
        if self.helping:
            return [(line, PLAIN) for line in HELP.splitlines()]
        if not self.shown:
            return [(f"{self.watch.drive.path}: the first figures after {self.interval:g} s",
                     PLAIN)]
        return lines_of(*self.shown, width, height)

    def draw(self):
        """Draw the window and the line with the keys."""
        height, width = self.screen.getmaxyx()
        self.screen.erase()
        # A character in the last column of the last line would scroll.
        for row, (text, style) in enumerate(self.content(width - 1, height - 1)[:height - 1]):
            self.screen.addnstr(row, 0, text, width - 1, self.styles[style])
        if height >= LEAST_HEIGHT:
            self.screen.addnstr(height - 1, 0, PAUSED if self.paused else KEYS, width - 1,
                                self.styles[DIM])
        self.screen.refresh()

    def key(self, code: int) -> bool:
        """Handle a key; return true if it ends the view."""
        if code == curses.KEY_RESIZE:
            return False
        if code in (ord("q"), ord("Q"), ESCAPE):
            return True
        if self.helping or code in (ord("h"), ord("?")):
            self.helping = not self.helping
        elif code == ord("p"):
            self.pause()
        return False

    def pause(self):
        """Hold the figures, or let them go on."""
        self.paused = not self.paused
        if not self.paused:
            self.before = self.watch.snapshot()
            self.next = time.monotonic() + self.interval

    def run(self):
        """Show the drive until a key ends it."""
        while True:
            if time.monotonic() >= self.next:
                # Also while paused: a drive that disappears is noticed.
                if self.paused:
                    self.watch.snapshot()
                else:
                    self.take()
                self.next = max(self.next + self.interval, time.monotonic())
            self.draw()
            self.screen.timeout(max(1, round(1000 * (self.next - time.monotonic()))))
            code = self.screen.getch()
            if code >= 0 and self.key(code):
                return


def check_terminal():
    """Raise UsageError if there is no terminal to draw on."""
    hint = "use --batch N for text, or --json"
    if not (is_terminal(sys.stdout) and is_terminal(sys.stdin)):
        raise UsageError(f"top needs a terminal: {hint}")
    try:
        curses.setupterm()
    except curses.error:
        name = os.environ.get("TERM", "")
        raise UsageError(f"the terminal's type TERM={name} is not known: set it, or {hint}"
                         if name else f"TERM is not set: set it, or {hint}") from None
    if not curses.tigetstr("cup"):
        raise UsageError(f"a {os.environ['TERM']} terminal cannot be drawn on: {hint}")


def show(watch: Watch, interval: float):
    """Show the drive. The terminal is restored in any case."""
    os.environ.setdefault("ESCDELAY", "25")

    def start(screen):
        # Not every terminal can hide the cursor, or has colours, whose defaults are to stay.
        with contextlib.suppress(curses.error):
            curses.curs_set(0)
        with contextlib.suppress(curses.error):
            curses.use_default_colors()
        View(screen, watch, interval).run()

    curses.wrapper(start)
