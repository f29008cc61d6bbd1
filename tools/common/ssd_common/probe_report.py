# SPDX-License-Identifier: GPL-2.0
"""A report of ssd-probe in a file, as ssd-probe writes it and ssdctl reads it.

A report is a dictionary of JSON's types, as schemas/probe_report.json has it: SCHEMA is the version
of its form. "findings" is {name: {value, unit, confidence, why, curve}}; a value of null means
"cannot tell". A curve is {title, x, y, lines: {name: [x values, y values]}, marks, log_x, log_y}.
"""
import json
import pathlib

from ssd_common import ToolError, checked, files

SCHEMA = 1
FORM = pathlib.Path(__file__).resolve().parent / "schemas/probe_report.json"


def values(report: dict) -> dict:
    """Return {name: value} of a report, as settings.tunables() takes it."""
    return {name: finding["value"] for name, finding in report["findings"].items()}


def read_json(path: str) -> dict:
    """Return the report in a file."""
    try:
        return checked.parse(files.read_named(path), FORM)
    except ValueError as error:
        why = "it is no JSON" if isinstance(error, json.JSONDecodeError | UnicodeError) else error
        raise ToolError(f"{path} is no report of ssd-probe of version {SCHEMA}: {why}") from None
