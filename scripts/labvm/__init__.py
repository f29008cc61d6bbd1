# SPDX-License-Identifier: GPL-2.0
"""The lab: boots a kernel in a virtual machine and runs one command there. scripts/lab is its
command.

    command     the command line, and the steps of a run
    kernel      finds a kernel and stages its modules with the project's
    arch        the architectures of kernels and guests
    foreign     the root of a guest of another architecture than this machine's
    image       writes the guest's initramfs
    system      lists the files of a guest in virtual time
    machine     how a virtual machine is started and ended
    qemu        QEMU's command line
    uml         User-Mode Linux's command line, for a simulation
    protocol    the ports to the guest: output, verdict, console
"""
import os
import shutil
import signal
import sys

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or
                     os.path.expanduser("~/.cache"), "ssd-iosched")
BUILD = os.path.join(PROJECT, "build")
# The project's folder in a guest in virtual time, wherever the project is on the host: the
# length of a path must not change a figure.
GUEST_PROJECT = "/ssd-iosched"


class LabError(Exception):
    """The guest cannot be started; the text says why and what to do."""


def end_at_sigterm():
    """Have SIGTERM end this program by an exception, so that guests end and folders are removed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def find_tool(name):
    """Return the path of a program, also if only root has its folder in PATH."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise LabError(f"{name} is missing: run scripts/setup")
    return path
