# SPDX-License-Identifier: GPL-2.0
"""Programs that trace-to-fio reads through: zstd and blkparse."""
import shutil
import subprocess
import tempfile
import threading

from ssd_common.output import plain
from ssd_common.packages import with_sbin

from trace_to_fio import TraceError

PACKAGES = {"zstd": "zstd", "blkparse": "blktrace"}


class Child:
    """The output of a program that reads @source, or a file of its arguments, as a stream."""

    def __init__(self, command: list[str], name: str, source=None):
        self.command, self.name, self.source = command, name, source
        self.failure: TraceError | None = None
        self.said = tempfile.TemporaryFile()
        self.pump = None
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE if source else subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=self.said, env=with_sbin())
        except FileNotFoundError:
            self.said.close()
            program = command[0]
            raise TraceError(f"{name}: {program} is missing: install {PACKAGES[program]}") from None
        if source:
            self.pump = threading.Thread(target=self._feed, daemon=True)
            self.pump.start()

    def _feed(self):
        """Write the source to the program."""
        try:
            with self.process.stdin as pipe:
                shutil.copyfileobj(self.source, pipe)
        except BrokenPipeError:
            # The program has ended; its status says why.
            pass
        except TraceError as error:
            self.failure = error
        except (OSError, ValueError) as error:
            self.failure = TraceError(f"{self.name}: {error}")

    def read(self, size: int) -> bytes:
        """Return at most @size bytes; none at the end. The program must have succeeded then."""
        found = self.process.stdout.read(size)
        if not found:
            self._finish()
        return found

    def _finish(self):
        """Raise an error if the program or its source failed. blkparse complains of damage, but
        succeeds."""
        if self.pump:
            self.pump.join()
        status = self.process.wait()
        if self.failure:
            raise self.failure
        self.said.seek(0)
        lines = self.said.read(1 << 16).decode(errors="replace").split("\n")
        why = next((line for line in lines if line.strip()), f"status {status}" if status else "")
        if why:
            raise TraceError(f"{self.name}: {self.command[0]}: {plain(why.strip())}")

    def close(self):
        """End the program."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.said.close()
