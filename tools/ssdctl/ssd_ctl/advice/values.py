# SPDX-License-Identifier: GPL-2.0
"""What fio fills into a line of a job file before it reads it: variables of the environment, what
the machine has, and what an expression comes to."""
import ast
import operator
import os
import re

VARIABLE = re.compile(r"\$\{([^}]+)\}")
WORD = re.compile(r"\$\w+", re.ASCII)
# Expressions are short, of whole numbers.
LONGEST, MOST = 80, 1 << 60
EXPRESSION = re.compile(r"[0-9kmgtpKMGTP()+*/ -]+")
SUFFIXED = re.compile(r"\b0*(\d{1,15})([kmgtp]?)\b", re.IGNORECASE | re.ASCII)
OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
              ast.Div: operator.floordiv}


def keywords() -> dict[str, int]:
    """Return the words that fio replaces by what the machine has."""
    page = os.sysconf("SC_PAGE_SIZE")
    return {"$mb_memory": os.sysconf("SC_PHYS_PAGES") * page >> 20,
            "$ncpus": os.sysconf("SC_NPROCESSORS_ONLN"), "$pagesize": page}


def unset(text: str) -> list[str]:
    """Return the names of the variables in a text that the environment does not have."""
    return [name for name in VARIABLE.findall(text) if not os.environ.get(name)]


def filled(text: str) -> str:
    """Return an option and its value, as in name=value, with all filled in. As in fio, what is not
    set is empty."""
    text = VARIABLE.sub(lambda found: os.environ.get(found[1], ""), text)
    calculated = False
    for word, number in keywords().items():
        calculated |= word in text
        text = text.replace(word, str(number))
    name, equals, value = text.partition("=")
    value = value.strip()
    # fio calculates what it has replaced a word in, and what is in parentheses.
    if calculated or value.startswith("(") and value.endswith(")"):
        value = result(value)
    return f"{name}{equals}{value}"


def result(value: str) -> str:
    """Return what an expression comes to; the value itself if it is none."""
    if len(value) > LONGEST or not EXPRESSION.fullmatch(value) or re.search(r"\*\*|//", value):
        return value
    try:
        number = evaluated(ast.parse(SUFFIXED.sub(plain, value), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError):
        return value
    return str(number)


def plain(found: re.Match) -> str:
    """Return a number without its suffix."""
    return str(int(found[1]) << 10 * " kmgtp".index(found[2].lower() or " "))


def evaluated(node: ast.expr) -> int:
    """Return what the node of an expression comes to; raise ValueError if that is no number of a
    reasonable size."""
    match node:
        case ast.Constant(value=int(number)):
            made = number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATIONS:
            made = OPERATIONS[type(op)](evaluated(left), evaluated(right))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            made = -evaluated(operand)
        case _:
            raise ValueError
    if abs(made) > MOST:
        raise ValueError
    return made


def not_filled(text: str) -> str:
    """Return why a value may not be what was meant: what is not filled in; "" if all is."""
    names = unset(text)
    if names:
        return (f"{names[0]} is not set: name it before the command, as in {names[0]}=VALUE ssdctl "
                f"(sudo {names[0]}=VALUE ssdctl)")
    words = WORD.findall(filled(text))
    return f"of {words[0]} the value is not known (those of {', '.join(keywords())} are)" if (
        words) else ""
