# SPDX-License-Identifier: GPL-2.0
"""QEMU's machine protocol, to plug and unplug drives of a running guest."""
import json

from labvm import LabError

SECONDS = 120


class Qmp:
    """The monitor at the other end of a socket."""

    def __init__(self, end):
        end.settimeout(SECONDS)
        self.end = end
        self.file = end.makefile("rb")
        self.events = []

    def begin(self):
        """Take the greeting."""
        self.read()
        self.execute("qmp_capabilities")

    def read(self):
        """Return the next message."""
        line = self.file.readline()
        if not line:
            raise LabError("QEMU has ended")
        return json.loads(line)

    def execute(self, command, **arguments):
        """Execute a command; return its result."""
        request = {"execute": command, "arguments": arguments}
        self.end.sendall(json.dumps(request).encode() + b"\n")
        while True:
            message = self.read()
            if "error" in message:
                raise LabError(f"QEMU refused {command}: {message['error']['desc']}")
            if "return" in message:
                return message["return"]
            self.events.append(message)

    def wait_for(self, event, **fields):
        """Wait for an event with these fields."""
        while True:
            for message in self.events:
                if message["event"] == event and fields.items() <= message["data"].items():
                    self.events.remove(message)
                    return
            self.events.append(self.read())
