# SPDX-License-Identifier: GPL-2.0
"""Run a command in a whole Debian system, in a guest.

    scripts/system [options] SYSTEM [-- COMMAND...]

SYSTEM is debian-12, debian-13 or debian-13-arm64, with systemd, udev, DKMS, a kernel and its
headers. Its images are made on first use, with mmdebstrap from this machine's Debian mirror, and
kept in ~/.cache/ssd-iosched/systems; without COMMAND that is all. The guest has no network; what
it writes is lost. Several COMMANDs, each a shell command with --boot before it, run in boots that
follow each other.
It exits with the last command's status, or with
  125     the system could not be made or booted, or an option is invalid
  255     the guest was lost, or the kernel complained
"""
import argparse
import os
import shlex
import sys

from labvm import LabError, debian, end_at_sigterm, whole
from labvm.protocol import LOST, NO_GUEST

KINDS = ", ".join(whole.DEVICES)


def drive(text):
    """Return the drive of KIND:SERIAL:MB."""
    kind, _, rest = text.partition(":")
    serial, _, size = rest.partition(":")
    if kind not in whole.DEVICES or not serial.isalnum() or not size.isdigit() or not int(size):
        raise argparse.ArgumentTypeError(f"{text} is not KIND:SERIAL:MB, with a kind of {KINDS}")
    return whole.Drive(f"drive-{serial}", serial, int(size) << 20, kind)


def named_file(text):
    """Return a file of the host."""
    if not os.path.isfile(text):
        raise argparse.ArgumentTypeError(f"{text} is not a file")
    return text


class Parser(argparse.ArgumentParser):
    """Report an error in one line, without the usage."""

    def error(self, message):
        print(f"error: {message} (scripts/system --help)", file=sys.stderr)
        sys.exit(NO_GUEST)


def parse_args(argv):
    """Return the options; boots has a command for each boot."""
    at = argv.index("--") if "--" in argv else len(argv)
    parser = Parser(usage="scripts/system [options] SYSTEM [-- COMMAND...]",
                    description=__doc__.split("\n\n", 2)[2],
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", metavar="SYSTEM", choices=list(debian.RELEASES))
    parser.add_argument("--boot", action="append", default=[], metavar="COMMAND", dest="boots",
                        help="a shell command for a boot of its own; may be repeated")
    parser.add_argument("--drive", action="append", default=[], type=drive, dest="drives",
                        metavar="KIND:SERIAL:MB", help=f"a drive ({KINDS}); may be repeated")
    parser.add_argument("--put", action="append", default=[], type=named_file, metavar="FILE",
                        help="copy a file to the guest's /root; may be repeated")
    parser.add_argument("--append", action="append", default=[], metavar="ARG",
                        help="a kernel argument; may be repeated")
    parser.add_argument("--uefi", action="store_true", help="boot with UEFI's firmware")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress messages")
    args = parser.parse_args(argv[:at])
    if argv[at + 1:]:
        args.boots.append(shlex.join(argv[at + 1:]))
    return args


def show(piece):
    """Pass output of the guest on."""
    sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def run(args):
    """Boot the system for each command; return the last one's status."""
    status = 0
    with whole.System(args.system, uefi=args.uefi, quiet=args.quiet) as system:
        for number, command in enumerate(args.boots):
            with system.boot(args.drives, args.append) as guest:
                for path in [] if number else args.put:
                    with open(path, "rb") as file:
                        guest.put(f"/root/{os.path.basename(path)}", file.read(), 0o755)
                status = guest.run(command, check=False, hear=show).status
    return status


def main(argv=None):
    """Run the command; return the exit status."""
    args = parse_args(sys.argv[1:] if argv is None else argv)
    end_at_sigterm()
    try:
        debian.find(args.system)
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return NO_GUEST
    try:
        return run(args)
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return LOST
