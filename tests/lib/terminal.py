# SPDX-License-Identifier: GPL-2.0
"""A program on a terminal of its own, which the test types on and reads."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios

from checks import check, fail, wait_for

LEAVES_SCREEN = b"\x1b[?1049l"


class Terminal:
    """A program on an xterm."""

    def __init__(self, command):
        self.master, self.slave = pty.openpty()
        self.size(24, 80)
        self.before = termios.tcgetattr(self.slave)
        self.said = b""
        self.child = subprocess.Popen(["setsid", "--ctty", *command], stdin=self.slave,
                                      stdout=self.slave, stderr=self.slave,
                                      env={**os.environ, "TERM": "xterm"})

    def size(self, rows, columns):
        """Change the size of the terminal; the program gets SIGWINCH."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys):
        """Type bytes."""
        os.write(self.master, keys)

    def hang_up(self):
        """Take the terminal away; the program gets SIGHUP."""
        os.close(self.slave)
        os.close(self.master)

    def read(self):
        """Take what was printed."""
        while select.select([self.master], [], [], 0)[0]:
            self.said += os.read(self.master, 1 << 16)

    def until(self, pattern, what):
        """Read until a pattern was printed."""
        start = len(self.said)

        def seen():
            ended = self.child.poll() is not None
            self.read()
            if re.search(pattern, self.said[start:]):
                return True
            if ended:
                fail(f"{what}: it has ended: {self.said[start:]}")
            return False
        wait_for(seen, what)
        print(f"ok    {what}")

    def ended(self, status, how):
        """Check that the program ends with this status, and left the terminal as it was."""
        wait_for(lambda: self.read() or self.child.poll() is not None, f"the end after {how}")
        self.read()
        check(self.child.returncode == status, f"status {self.child.returncode} after {how}")
        check(LEAVES_SCREEN in self.said and termios.tcgetattr(self.slave) == self.before,
              f"the terminal is restored after {how}")
        self.hang_up()
