# SPDX-License-Identifier: GPL-2.0
"""What ssd-probe has found on each preset's drive, and the tunables that follow. The files in
probed/ are made by probe-presets.py."""
import functools
import hashlib
import json
import pathlib
import sys

import model

sys.path.insert(0, str(model.PROJECT / "tools/common"))

from ssd_common import settings  # noqa: E402  (in a folder added above)

FOLDER = model.BENCH / "probed"


def file_of(preset: str) -> pathlib.Path:
    """Return the file with the findings on a preset's drive."""
    return FOLDER / f"{preset}.json"


def digest(preset: str) -> str:
    """Return a digest of the drive that a preset describes."""
    keys = json.dumps(model.preset_keys(preset), sort_keys=True)
    return hashlib.sha256(keys.encode()).hexdigest()[:16]


@functools.cache
def values(preset: str) -> dict:
    """Return {name: value} of the findings; None where the probe cannot tell. Raise Failed if
    they are missing, or of a drive with other keys."""
    path = file_of(preset)
    kept = json.loads(path.read_text()) if path.exists() else {}
    if kept.get("drive") != digest(preset):
        raise model.Failed(f"the preset {preset} was not probed as it is: "
                           f"tests/bench/probe-presets.py {preset}")
    return {name: found["value"] for name, found in kept["findings"].items()}


def tunables(scheduler: str, preset: str) -> dict[str, int | str]:
    """Return {name: value} of a scheduler's tunables that the probe prints for the drive. What it
    cannot tell keeps its default."""
    return settings.tunables(values(preset)).get(scheduler, {})
