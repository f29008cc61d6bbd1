# SPDX-License-Identifier: GPL-2.0
"""Show, measure, select and keep the I/O schedulers of drives.

Without a command it shows all drives. See ssdctl(8).
"""
import argparse
import importlib
import pathlib
import sys

from ssd_common import ToolError, output, packages
from ssd_common.arguments import USAGE, Parser
from ssd_common.signals import handled, ignore
from ssd_common.version import VERSION
from ssd_ctl import CtlError, UsageError

# {command: (its module, what it does)}. The module has add_options(parser) and run(args), which
# returns the exit status.
COMMANDS = {
    "status": ("status", "show the drives, their schedulers and what they do (the default)"),
    "recommend": ("recommend", "say at once what suits a drive, by its kind"),
    "advise": ("advise", "measure the schedulers on a drive and recommend one"),
    "apply": ("apply", "select a scheduler now"),
    "persist": ("persist", "keep a scheduler across boots, by a udev rule"),
    "revert": ("revert", "undo apply and persist of a drive"),
    "undo-all": ("undo_all", "undo everything on all drives"),
    "top": ("top", "watch a drive and its scheduler live"),
    "report": ("report_command", "write a file for a report of a defect"),
    "hwdb": ("hwdb", "apply settings by the drive's model from the hardware database, or not"),
}
# Commands of udev's rules.
HIDDEN = {"udev-apply": "udev_apply"}
# Modules with the options of commands whose own module needs what is not Python's.
OPTIONS = {"advise": "advise_options"}
FAILED = 1
DEVICES = pathlib.Path("/dev")


def general_parser() -> Parser:
    """Return the parser of what comes before a command."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {text}" for name, (_, text) in COMMANDS.items()]
    parser = Parser(prog="ssdctl", usage="ssdctl [COMMAND] [options]",
                    description=__doc__.split("\n", maxsplit=1)[0],
                    formatter_class=argparse.RawDescriptionHelpFormatter,
                    epilog="\n".join(["commands (ssdctl COMMAND --help):", *lines]))
    parser.add_argument("--version", action="version", version=f"ssdctl {VERSION}")
    return parser


def module_of(command: str):
    """Return the module of a command."""
    return imported(command, HIDDEN.get(command) or COMMANDS[command][0])


def options_of(command: str):
    """Return the module that has the options of a command, and says what it does."""
    name = OPTIONS.get(command)
    return imported(command, name) if name else module_of(command)


def imported(command: str, name: str):
    """Return a module."""
    try:
        return importlib.import_module(f"ssd_ctl.{name}")
    except ModuleNotFoundError as error:
        missing = error.name or str(error)
        raise CtlError(f"{command}: the Python module {missing} is missing: "
                       f"{packages.remedy(missing, 'ssdctl')}") from None


def split(argv: list[str]) -> tuple[str, list[str]]:
    """Return the command and its arguments."""
    if argv and (argv[0] in COMMANDS or argv[0] in HIDDEN):
        return argv[0], argv[1:]
    if not argv or argv[0].startswith("-"):
        late = [word for word in argv if word in COMMANDS]
        if late:
            raise UsageError(f"name the command first: ssdctl {late[0]} {argv[0]}")
        return "status", argv
    if "/" in argv[0] or (DEVICES / argv[0]).is_block_device():
        return "status", argv
    raise UsageError(f"there is no command {argv[0]} (ssdctl --help)")


def execute(argv: list[str]) -> int:
    """Run a command; return its exit status."""
    if argv and argv[0] in ("-h", "--help", "--version"):
        general_parser().parse_args(argv[:1])
    command, rest = split(argv)
    options = options_of(command)
    parser = Parser(prog=f"ssdctl {command}", description=options.__doc__.split("\n\n")[0])
    options.add_options(parser)
    args = parser.parse(rest)
    return module_of(command).run(args)


def end(number: int, _):
    """End because of a signal. No other one interrupts what is cleaned up then."""
    ignore()
    sys.exit(128 + number)


def command_line() -> int:
    """Run the command line; return the exit status."""
    try:
        with handled(end):
            return execute(sys.argv[1:])
    except UsageError as error:
        output.say(f"ssdctl: {error}")
        return USAGE
    except (CtlError, ToolError) as error:
        output.say(f"ssdctl: {error}")
        return FAILED


def main() -> int:
    """Run the command; return the exit status."""
    output.prepare()
    return output.finish("ssdctl", command_line)
