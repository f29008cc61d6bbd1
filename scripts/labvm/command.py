# SPDX-License-Identifier: GPL-2.0
"""Run a command in a virtual machine under a stock (or any other) kernel.

    scripts/lab [options] -- COMMAND...

The guest has the host's root file system, with all tools. Its writes are lost, except
those to the project's build/ folder. In virtual time, with --in-memory, and where the kernel
cannot mount the host's files, the guest has a copy in memory instead: the packages that the
project needs, and the project without build/, in /ssd-iosched; name other files that the
command needs with --package and --file.
A simulation is in virtual time, too, but no instruction takes any of it. A process that
waits for another one in a loop, without a system call, waits forever; a process gets some
250 MB (the host's vm.max_map_count, in pages); the TSC is the host's: fio needs
--clocksource=clock_gettime.
The lab first builds the project's modules for the kernel; modprobe finds them in the guest.
The command runs as root in the project's folder. The lab exits with its status:
  0..123  the command's status; 1 also if the kernel complained (warning, oops,
          lockdep, KASAN, leak, ...), and the lab prints the complaint
  124     the command did not end within --timeout
  125     the guest could not be started, or an option is invalid
  254     QEMU corrupted the flags of an emulated CPU, whatever else happened
  255     the guest was lost (panic, reset, the machine died)
"""
import argparse
import contextlib
import json
import os
import re
import sys
import tempfile

from labvm import (BUILD, GUEST_PROJECT, PROJECT, LabError, arch, end_at_sigterm, image, kernel,
                   machine, qemu, uml)
from labvm.protocol import NO_GUEST, Guest, Progress, show

# The guest's memory grows with its files in steps of so many MB: a byte more must not
# change a figure.
ROOT_MB = 128
# The series of the kernel of --simulate.
SIMULATED = "6.12"


def parse_size(text):
    """Return the bytes of a size such as 512M or 1G."""
    match = re.fullmatch(r"(\d+)([KMGT]?)", text)
    if not match or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text} is not a size as in 512M or 1G")
    return int(match[1]) << 10 * " KMGT".index(match[2] or " ")


def limited_drive(text):
    """Return (bytes, I/Os a second or 0) of SIZE[,iops=N]."""
    size, _, limit = text.partition(",")
    if not re.fullmatch(r"(iops=[1-9]\d*)?", limit) or text.endswith(","):
        raise argparse.ArgumentTypeError(f"{text} is not SIZE or SIZE,iops=N")
    return parse_size(size), int(limit.removeprefix("iops=") or 0)


def card(text):
    """Return the same of a card, whose size is a power of 2."""
    size, iops = limited_drive(text)
    if size & (size - 1):
        raise argparse.ArgumentTypeError(f"{text}: the size of a card is a power of 2")
    return size, iops


def disk_image(text):
    """Return the path of a disk's image."""
    if not os.path.isfile(text):
        raise argparse.ArgumentTypeError(f"{text} is not a file")
    return os.path.realpath(text)


def named_file(text):
    """Return (path in the guest, path on the host) of NAME=FILE."""
    name, _, path = text.partition("=")
    if not name or os.path.isabs(name) or not os.path.isfile(path):
        raise argparse.ArgumentTypeError(f"{text} is not NAME=FILE with a file of the host")
    return os.path.join(GUEST_PROJECT, os.path.normpath(name)), os.path.realpath(path)


def project_path(text):
    """Return a path relative to the project."""
    path = os.path.relpath(os.path.realpath(os.path.join(PROJECT, text)), PROJECT)
    if path.startswith("..") or not os.path.exists(os.path.join(PROJECT, path)):
        raise argparse.ArgumentTypeError(f"{text} is neither a file nor a folder of the project")
    return path


def positive(text):
    """Return a whole number above 0."""
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return int(text)


class Parser(argparse.ArgumentParser):
    """Report an error in one line, without the usage."""

    def error(self, message):
        print(f"error: {message} (scripts/lab --help)", file=sys.stderr)
        sys.exit(NO_GUEST)


def option_parser():
    """Return the parser of the options."""
    parser = Parser(usage="scripts/lab [options] -- COMMAND...",
                    description=__doc__.split("\n\n", 2)[2],
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    copied = parser.add_argument_group("with its files in memory")
    virtual = parser.add_argument_group("in virtual time")
    add("--kernel", default="6.12", metavar="NAME",
        help="6.1, 6.12, a Debian release, newest (of Debian's), with a flavour of Debian's as in "
             "6.12-arm64 or newest-rt-amd64, an image file, a built kernel tree, or debug-6.1, "
             "debug-6.12 or debug-7.2: with KUnit, KASAN, lockdep and fault injection, or "
             "debug-kcsan-6.12: with KCSAN, or small-nobtf-arm64, small-thinlto or small-deep "
             "(see scripts/small-kernel), built on first use (default: 6.12)")
    add("--arch", choices=tuple(arch.ARCHES), metavar="NAME",
        help="the same of a series as --kernel SERIES-NAME: arm64 or amd64. A guest of another "
             "architecture than this machine's has Debian's packages of that one")
    add("--cpus", type=positive, metavar="N", help="default: 2; in virtual time 1")
    add("--memory", default=1 << 30, type=parse_size, metavar="SIZE",
        help="without the memory for the copy of the host's files (default: 1G)")
    add("--disk", action="append", default=[], type=parse_size, metavar="SIZE",
        help="a scratch virtio disk, /dev/vda and following; may be repeated")
    add("--disk-image", action="append", dest="disk", type=disk_image, metavar="FILE",
        help="a virtio disk with this image, which keeps what the guest writes")
    add("--nvme", action="append", default=[], type=parse_size, metavar="SIZE",
        help="a scratch NVMe disk, /dev/nvme0n1 and following; may be repeated")
    add("--sd", action="append", default=[], type=card, metavar="SIZE[,iops=N]",
        help="an SD card behind the drivers sdhci-pci and mmc_block, /dev/mmcblk0 and following, "
             "of at most N I/Os a second; may be repeated")
    add("--usb", action="append", default=[], type=limited_drive, metavar="SIZE[,iops=N]",
        help="the same of a USB stick behind usb-storage, with the serial number usb0 and "
             "following: /dev/sda or another one")
    add("--uas", action="append", default=[], type=limited_drive, metavar="SIZE[,iops=N]",
        help="the same of a USB drive behind uas, uas0 and following")
    add("--append", action="append", default=[], metavar="ARG",
        help="a kernel argument; may be repeated")
    add("--timeout", type=positive, default=1800, metavar="S",
        help="end the guest if its command runs longer (default: 1800 s)")
    add("--kvm", action="store_true", help="use KVM instead of emulation")
    add("--no-modules", action="store_true", help="do not build the project's modules")
    add("-q", "--quiet", action="store_true", help="no progress messages")
    copied.add_argument("--in-memory", action="store_true",
                        help="the guest can be suspended and resumed; the connection to files of "
                             "the host cannot. Implied by virtual time, and by kernels that "
                             "cannot mount files of the host (Debian's cloud)")
    copied.add_argument("--package", action="append", default=[], metavar="NAME",
                        help="a Debian package that the command needs; may be repeated")
    copied.add_argument("--file", action="append", default=[], type=named_file,
                        metavar="NAME=FILE",
                        help="a file of the host that the command needs, under this name in "
                             "the project's folder; may be repeated")
    copied.add_argument("--only", action="append", default=[], type=project_path,
                        metavar="PATH",
                        help="of the project the guest has these files and folders only; may "
                             "be repeated")
    virtual.add_argument("--virtual-time", action="store_true",
                         help="one instruction is one nanosecond: figures repeat exactly, with "
                              "one CPU and without disks of the host")
    virtual.add_argument("--simulate", action="store_true",
                         help="an instruction takes no time, the guest runs ten times faster: "
                              "User-Mode Linux instead of QEMU, built on first use; to compare "
                              "what devices and schedulers do if the CPU is not the limit")
    virtual.add_argument("--count-instructions", metavar="FILE",
                         help="count how often each instruction of an x86-64 kernel is executed "
                              "(the format: scripts/labvm/count-instructions.c)")
    virtual.add_argument("--digest", action="store_true",
                         help="start no guest; print digests of what decides its figures, as "
                              "JSON: of files, kernel, machine and options, and of the module of "
                              "each scheduler")
    return parser


def check_simulation(parser, args):
    """Report an error if options do not go with --simulate."""
    if not args.simulate:
        return
    if args.kernel != SIMULATED:
        parser.error(f"--simulate has a kernel of series {SIMULATED} only")
    if args.virtual_time or args.kvm or args.arch:
        parser.error("--simulate excludes --virtual-time, --kvm and --arch")
    if args.disk or args.nvme:
        parser.error("--simulate has no disks; emulate one with ssdemu or null_blk")
    if args.cpus not in (None, 1):
        parser.error("--simulate has one CPU")


def parse_args(argv):
    """Return the options, and the command after '--'."""
    at = argv.index("--") if "--" in argv else len(argv)
    parser = option_parser()
    args, command = parser.parse_args(argv[:at]), argv[at + 1:]
    if not command:
        parser.error("no command: put it after --")
    check_simulation(parser, args)
    args.virtual_time |= args.simulate
    # Whether the guest may be suspended.
    args.suspends = args.in_memory and not args.virtual_time
    args.in_memory |= args.virtual_time
    if (args.file or args.package or args.only) and not args.in_memory:
        parser.error("--file, --package, --only: only with --virtual-time, --simulate or "
                     "--in-memory; otherwise the guest has the host's files")
    if args.digest and not args.virtual_time:
        parser.error("--digest: only with --virtual-time or --simulate; other guests do not "
                     "repeat exactly")
    if args.virtual_time and (args.sd or args.usb or args.uas):
        parser.error("--sd, --usb, --uas: not with --virtual-time or --simulate; they keep the "
                     "host's time")
    if args.count_instructions and (args.simulate or not args.virtual_time):
        parser.error("--count-instructions: only with --virtual-time")
    if args.kvm and args.virtual_time:
        parser.error("--kvm has no virtual time")
    if args.kvm and not os.access("/dev/kvm", os.R_OK | os.W_OK):
        parser.error("--kvm: /dev/kvm cannot be used here")
    if args.arch and re.fullmatch(r"newest|\d+\.\d+", args.kernel):
        args.kernel += f"-{args.arch}"
    elif args.arch:
        parser.error("--arch: only with a series as --kernel; other kernels have one")
    args.cpus = args.cpus or (1 if args.virtual_time else 2)
    args.memory >>= 20
    return args, command


def write_orders(args, command, run):
    """Write the command and its environment for scripts/lab-guest."""
    with open(f"{run}/command", "wb") as file:
        file.write(b"".join(os.fsencode(word) + b"\0" for word in command))
    environment = {"LAB_VIRTUAL_TIME": int(args.virtual_time),
                   "LAB_SIMULATED": int(args.simulate), "LAB_DISKS": len(args.disk),
                   "LAB_CARDS": len(args.sd), "LAB_STICKS": len(args.usb) + len(args.uas),
                   "SEED": os.environ.get("SEED", "1")}
    environment |= {name: os.environ[name] for name in ("DURATION", "TEST_QUICK")
                    if name in os.environ}
    if args.suspends:
        environment["LAB_PCI_LINES"] = 1
    if not args.virtual_time:
        # The tree is read-only: otherwise each program of the project is compiled at each start,
        # which takes half of a short command's time.
        environment["PYTHONPYCACHEPREFIX"] = "/run/pycache"
    with open(f"{run}/environment", "w", encoding="utf-8") as file:
        file.writelines(f"{name}={value}\n" for name, value in environment.items())


def run_guest(found, run, progress, prefix):
    """Run a guest of the machine @found, with the initramfs in the folder @run; return the
    lab's exit status. @prefix: the words before the machine's command."""
    with contextlib.ExitStack() as stack:
        for left in reversed(range(found.boots)):
            guest = Guest(found, run, progress, prefix)
            stack.callback(guest.stop)
            in_time = guest.relay()
            if guest.up or not left or guest.timed_out():
                break
            guest.give_up(in_time)
            show(f"{guest.loss}; booting it again", guest.console_tail())
        return guest.status(in_time)


def find_machine(args):
    """Return the machine, with its kernel, that the options ask for."""
    if args.simulate:
        return uml.Machine(args, kernel.Kernel.for_simulation())
    found = kernel.Kernel.find(args.kernel)
    if (args.virtual_time or args.kvm) and found.arch != arch.own():
        raise LabError(f"--virtual-time and --kvm: not with a kernel of {found.arch.name}, whose "
                       "guests are emulated with the host's time")
    args.in_memory |= not found.mounts()
    return qemu.Machine(args, found)


def run_lab(args, command):
    """Make the guest and run it; return the lab's exit status."""
    progress = Progress(args.quiet or args.digest)
    found = find_machine(args)
    release = found.kernel.release
    if args.in_memory:
        command = [word.replace(PROJECT + "/", GUEST_PROJECT + "/") for word in command]
    os.makedirs(BUILD, exist_ok=True)
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(tempfile.TemporaryDirectory(prefix="lab."))
        os.chmod(run, 0o755)
        progress.say(f"modules for {release}")
        stage = kernel.stage_modules(found.kernel, run, not args.no_modules, args.virtual_time)
        write_orders(args, command, run)
        if args.in_memory:
            root = image.write_root(found, run, stage)
            args.memory += ROOT_MB * -(-os.path.getsize(f"{run}/initramfs") // (ROOT_MB << 20))
            if args.digest:
                print(json.dumps(image.digests(found, root)))
                return 0
        else:
            image.write_mounting(found, run, stage)
        prefix = []
        if args.virtual_time:
            prefix = stack.enter_context(machine.one_cpu(found.share_cpu))
        progress.say(f"booting {release}: {args.cpus} CPU, {args.memory}M"
                     + (", virtual time" if args.virtual_time else ""))
        return run_guest(found, run, progress, prefix)


def main():
    """Run the lab; return its exit status."""
    args, command = parse_args(sys.argv[1:])
    end_at_sigterm()
    try:
        return run_lab(args, command)
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return NO_GUEST
    except KeyboardInterrupt:
        return 130
