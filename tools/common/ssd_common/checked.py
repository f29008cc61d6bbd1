# SPDX-License-Identifier: GPL-2.0
"""JSON from files, checked against a schema: what a program uses is of the types that it expects,
whoever wrote the file."""
import functools
import json
import math
import pathlib
import typing

from ssd_common import packages

# No number of ours exceeds it, and Python's arithmetic fails for none below.
MOST = 1 << 63


def number(text: str) -> float:
    """Return a number with a fraction or an exponent. Raise ValueError if it is beyond MOST."""
    value = float(text)
    if not math.isfinite(value) or abs(value) > MOST:
        raise ValueError(f"{text} is too large")
    return value


def whole(text: str) -> int:
    """Return a whole number. Raise ValueError if it is beyond MOST."""
    # Python takes long for the digits of a huge one.
    value = int(text) if len(text) < 30 else MOST + 1
    if abs(value) > MOST:
        raise ValueError("a number is too large")
    return value


def constant(name: str) -> typing.NoReturn:
    """Refuse NaN and Infinity, which are no JSON."""
    raise ValueError(f"{name} is no number")


@functools.cache
def validator(schema: pathlib.Path):
    """Return what checks a value against the schema in a file."""
    made = json.loads(schema.read_text(encoding="utf-8"))
    return packages.need("jsonschema").Draft7Validator(made)


def loaded(text: str):
    """Return the value of a text in JSON. Raise ValueError, with what is wrong in a few words."""
    try:
        found = json.loads(text, parse_float=number, parse_int=whole, parse_constant=constant)
        # A half of a surrogate pair could be printed nowhere.
        json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeError:
        raise ValueError("it is no UTF-8") from None
    return found


def parse(text: str, schema: pathlib.Path):
    """As loaded(); raise ValueError also unless the value fits a schema."""
    found = loaded(text)
    try:
        error = next(validator(schema).iter_errors(found), None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if error:
        raise ValueError(told(error))
    return found


def told(error) -> str:
    """Return what a value does not fit, in a few words."""
    place = ".".join(map(str, error.absolute_path))
    # The message may quote all of a file.
    why = ascii(error.message)[1:-1]
    return f"{ascii(place)[1:-1][:60]}: {why if len(why) < 80 else 'not as expected'}" if place \
        else why if len(why) < 80 else "it is not as expected"
