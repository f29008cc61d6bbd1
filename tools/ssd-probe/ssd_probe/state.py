# SPDX-License-Identifier: GPL-2.0
"""What an interrupted run leaves for the next one, and how findings are stored.

A state is a JSON file in STATES, named by the drive's identity and the options that results
depend on. It is written after each procedure.
"""
import dataclasses
import hashlib
import json
import math
import pathlib
import re

from ssd_common import checked, files
from ssd_probe.probe import Curve, Finding

STATES = pathlib.Path("/var/lib/ssd-probe")
SCHEMA = pathlib.Path(__file__).resolve().parent / "schemas/state.json"
FORMAT = 1


def plain(value):
    """Return @value with the types of JSON: numbers of numpy become Python's, and those that are
    not finite None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def stored(finding: Finding) -> dict:
    """Return a finding for JSON."""
    return plain(dataclasses.asdict(finding))


def restored(data: dict) -> Finding:
    """Return the finding that stored() has made @data of."""
    curve = data.get("curve")
    return Finding(**{**data, "curve": Curve(**curve) if curve else None})


class State:
    """The state of a run. @key: what it has to agree in with the run before. data: {"procedures":
    {name: record}, "filled": bytes of the range that were written in advance, "written": bytes
    written in all}."""

    def __init__(self, key: dict, name: str, folder: pathlib.Path = STATES):
        self.key = plain({"format": FORMAT, **key})
        digest = hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:12]
        self.path = folder / f"{re.sub('[^a-zA-Z0-9]+', '-', name).strip('-')}-{digest}.json"
        self.clear()

    def load(self) -> bool:
        """Use what a run before has left; return false if there is nothing to go on with."""
        text = files.read_ours(self.path)
        try:
            found = checked.parse(text, SCHEMA) if text else {}
        except ValueError:
            return False
        if found.get("key") != self.key:
            return False
        self.data = found["data"]
        return self.worth()

    def clear(self):
        """Begin anew."""
        self.data = {"procedures": {}, "filled": 0, "written": 0}

    def worth(self) -> bool:
        """Return true if another run can go on with it."""
        return bool(self.data["procedures"] or self.data["filled"])

    def save(self):
        """Write the state, so that it is whole at any time."""
        text = json.dumps({"key": self.key, "data": self.data})
        files.write_ours(self.path, text + "\n", files.PRIVATE, files.PRIVATE_FOLDER)

    def remove(self):
        """Remove the file."""
        # On a file system that is read-only, not even a missing one can be removed.
        if self.path.exists():
            self.path.unlink()
