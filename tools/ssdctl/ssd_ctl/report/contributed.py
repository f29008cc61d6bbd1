# SPDX-License-Identifier: GPL-2.0
"""The result of a real drive, to send to the project: what the drive is and has, and what advise
has found. schemas/real-drive.json states its form. It has no serial number and no name."""
import datetime
import json
import os
import pathlib

from ssd_common import ToolError, checked
from ssd_common.drive import Drive
from ssd_common.version import VERSION
from ssd_ctl import CtlError, drives, hwdb, saved, schedulers
from ssd_ctl.advice.figures import summed
from ssd_ctl.choice import Choice
from ssd_ctl.report import names
from ssd_ctl.report.bounded import Budget
from ssd_ctl.report.redact import Redactor, tokens, walked

FORM = pathlib.Path(__file__).resolve().parents[1] / "schemas/real-drive.json"
SCHEMA = 1
LOADS = ("desktop", "database", "copy")
OWN = "own job file"
OF_DRIVE = ("vendor", "model", "firmware", "driver", "bytes", "rotational", "logical_block")
OF_ADVICE = ("sure", "recommended", "choice", "had", "confidence", "minutes", "runs", "rounds",
             "changes", "rivals")
OF_CANDIDATE = ("name", "choice", "gain", "low", "high", "verdict")


def of_drive(drive: Drive) -> dict:
    """Return what a drive is."""
    found = drive.identity()
    return {**{name: found[name] for name in OF_DRIVE}, "kind": drives.kind(drive),
            "tags": drive.tags}


def of_advice(made: dict) -> dict:
    """Return the part of a report of advise that is about the drive and not about its owner."""
    load = made["workload"]
    return {**{name: made[name] for name in OF_ADVICE},
            "kernel": made["kernel"], "version": made["version"],
            "workload": load if load in LOADS else OWN,
            "disturbed": len(made["disturbed"]),
            "candidates": [{**{name: found[name] for name in OF_CANDIDATE},
                            **{way: summed(found, way) for way in ("read", "write")}}
                           for found in made["candidates"]]}


def entry(drive: Drive, made: dict) -> list[str]:
    """Return the lines of an entry for the hardware database, [] if there can be none."""
    if not made.get("sure"):
        return []
    try:
        return hwdb.entry(drive, Choice.from_json(made["choice"]), []).splitlines()
    except CtlError:
        return []


def stored(drive: Drive) -> dict | None:
    """Return the report of advise that is stored for a drive, None if there is none."""
    try:
        return saved.advice(drive)
    except (CtlError, ToolError):
        return None


def result(drive: Drive, made: dict | None) -> dict:
    """Return the result of a drive. @made: a report of advise."""
    try:
        advice = of_advice(made) if made else None
    except (KeyError, TypeError, AttributeError, ZeroDivisionError):
        # Of an earlier version.
        advice = None
    return {"schema": SCHEMA, "version": VERSION, "date": datetime.date.today().isoformat(),
            "kernel": os.uname().release, "machine": os.uname().machine, "drive": of_drive(drive),
            "has": schedulers.read_choice(drive).as_json(), "advice": advice,
            "hwdb": entry(drive, made) if made and advice else []}


def text(drive: Drive, made: dict | None) -> str:
    """Return the result of a drive for a file, without names. @made: a report of advise. Raises
    CtlError if it does not fit the schema."""
    if not drive.identity()["model"]:
        raise CtlError(f"{drive.path} tells no model: nobody could use its result")
    found = result(drive, made)
    known, lacking = names.known(Budget())
    if lacking:
        raise CtlError(f"the result of {drive.path} is not written: {lacking[0]}")
    shown = tokens(str(found["drive"][name]) for name in ("vendor", "model", "firmware"))
    redact = Redactor(known, set(schedulers.ALL) | {found["machine"]}, shown)
    made_text = json.dumps(walked(found, redact), indent=1) + "\n"
    try:
        checked.parse(made_text, FORM)
    except ValueError as error:
        raise CtlError(f"the result of {drive.path} does not fit its schema: {error}") from None
    return made_text
