# SPDX-License-Identifier: GPL-2.0
"""QEMU's command line. The lab calls QEMU directly, without udev or an init system in the
guest: the guest boots in a quarter of the time that virtme-ng takes, and no service runs
beside a measurement."""
import os
import subprocess

from labvm import BUILD, PROJECT, LabError, arch, find_tool, foreign, machine

# The longest time, in seconds, that a guest needs until it is up. A stock kernel needs 10 s,
# a debug kernel on a busy machine 100 s.
BOOT_SECONDS = 150
OWN_BOOT_SECONDS = 600
# The number of tries to boot a guest. A guest of QEMU 7.2 sometimes hangs or is lost while it
# boots; the project's code has not run by then. A debug kernel that reports a defect while
# it boots checks nothing afterwards. The lab boots such a guest again.
BOOTS = 3

# Of the kernel's command line, what all emulated machines have. A busy host may stop an emulated
# CPU for longer than the 21 seconds after which the kernel reports a stall; a real stall lasts.
KERNEL_WORDS = ("rcupdate.rcu_cpu_stall_timeout=300", "watchdog_thresh=60",
                "loglevel=5", "log_buf_len=4M", "panic=-1", "oops=panic",
                # A third of the boot: self-tests of ciphers, a random number generator and a
                # type of keys, none of which a test uses.
                "cryptomgr.notests", "initcall_blacklist=jent_mod_init,init_encrypted")
# An emulated CPU has no flaws to work around. In virtual time this would change all figures.
NO_MITIGATIONS = "mitigations=off"


def quote(path):
    """Return a path as QEMU's options want it."""
    return path.replace(",", ",,")


def processors(args, to=None):
    """Options for the CPUs of architecture @to, default: this machine's, and what executes their
    instructions."""
    to = to or arch.own()
    if args.kvm:
        return ["-smp", str(args.cpus), "-accel", "kvm", "-cpu", "host"]
    if to.name != "amd64" and not args.virtual_time:
        # See below: its second CPU is there, as it cannot be added later.
        return ["-smp", str(max(args.cpus, 2)), "-accel", "tcg", "-cpu", to.cpu]
    # For a machine that can only have one CPU, QEMU (before 8.1) translates no memory barrier,
    # though its devices run in other threads: a driver and its device then miss each other's
    # updates of a queue, and an I/O never ends. So allow a second CPU, which the kernel is told
    # to ignore. In virtual time the threads take turns.
    spare = ",maxcpus=2" if args.cpus == 1 and not args.virtual_time else ""
    # QEMU before 8.0 may take an operand of an earlier instruction for the flags after
    # "cmpxchg16b". A pointer becomes the CPU's flags, and starts single-stepping in the kernel,
    # for example. The kernel does not use the instruction without CX16. In virtual time the
    # option would change all figures.
    cx16 = "" if args.virtual_time else ",cx16=off"
    return ["-smp", f"{args.cpus}{spare}", "-accel", "tcg",
            "-cpu", to.cpu + cx16]


def hardware(args, kernel, run):
    """Options for the CPU, the memory and the kernel."""
    options = ["-nodefaults", "-no-reboot", "-no-user-config", "-display", "none",
               "-machine", kernel.arch.machine, "-m", f"{args.memory}M",
               *processors(args, kernel.arch),
               "-kernel", kernel.image, "-initrd", f"{run}/initramfs"]
    if args.virtual_time:
        # One instruction is one nanosecond, idle time is skipped, and the guest reads
        # neither the host's clock nor its random numbers. Recording stops QEMU (7.2) from
        # skipping the idle time of a CPU before it has counted the instructions that the
        # CPU executed last. QEMU can record one CPU only.
        record = ",rr=record,rrfile=/dev/null" if args.cpus == 1 else ""
        options += ["-icount", f"shift=0,sleep=off{record}", "-seed", "1",
                    "-rtc", "base=2026-01-01,clock=vm", "-serial", f"file:{run}/console"]
    return options


def serial_ports(args, ports):
    """Options for the @ports of protocol.Guest, {name: socket}. A guest that may be suspended has
    serial lines behind PCI: the driver of virtio's ports of Linux 7.3 loses, as it resumes, the
    host's word that it listens, and all output waits for that."""
    # Output has been written when the guest continues. With ioeventfd another thread writes it,
    # and the guest's wait for that depends on the host.
    options = [] if args.suspends else ["-device", "virtio-serial-pci,ioeventfd=off"]
    for number, (name, end) in enumerate(ports.items(), start=1):
        backend = f"socket,id={name},fd={end.fileno()}"
        if name == "console":
            options += ["-chardev", f"{backend},mux=on", "-serial", f"chardev:{name}"]
        elif args.suspends:
            options += ["-chardev", backend, "-device", f"pci-serial,chardev={name}"]
        else:
            options += ["-chardev", backend,
                        "-device", (f"virtserialport,nr={number},chardev={name},"
                                    f"name=lab.{name}")]
    return options


def host_folders(folders):
    """Options for @folders of the host that the guest mounts: (tag, path, whether it is
    writable)."""
    options = []
    for tag, path, writable in folders:
        options += ["-fsdev", (f"local,id={tag},path={quote(path)},security_model=none,"
                               f"readonly={'off' if writable else 'on'},multidevs=remap"),
                    "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
    return options


def disk(name, path, device, iops=0):
    """Options for a disk with the image at @path, of at most @iops I/Os a second; 0: of any."""
    limit = f",throttling.iops-total={iops}" if iops else ""
    return ["-drive", (f"if=none,id={name},file={quote(path)},format=raw,"
                       f"cache=unsafe,discard=unmap{limit}"),
            "-device", f"{device},drive={name}"]


def scratch(path, size):
    """Make an image of @size bytes; return its path."""
    with open(path, "wb") as file:
        file.truncate(size)
    return path


def disks(args, pci, run):
    """Options for the disks; scratch images are files in @run, @pci is the path of the PCI bus."""
    options = []
    for number, image in enumerate(args.disk):
        path = image if isinstance(image, str) else scratch(f"{run}/disk{number}", image)
        options += disk(f"disk{number}", path, "virtio-blk-pci")
    for number, size in enumerate(args.nvme):
        path = scratch(f"{run}/nvme{number}", size)
        options += disk(f"nvme{number}", path, f"nvme,serial=lab{number}")
    return options + cards(args, pci, run) + sticks(args, run)


def cards(args, pci, run):
    """Options for SD cards, each in a host of its own on the bus @pci."""
    options = []
    for number, (size, iops) in enumerate(args.sd):
        name = f"sd{number}"
        options += ["-device", f"sdhci-pci,id=host{number}",
                    *disk(name, scratch(f"{run}/{name}", size),
                          f"sd-card,bus={pci}/host{number}/sd-bus", iops)]
    return options


def sticks(args, run):
    """Options for USB drives."""
    options = ["-device", "qemu-xhci,id=xhci"] if args.usb or args.uas else []
    for number, (size, iops) in enumerate(args.usb):
        name = f"usb{number}"
        options += disk(name, scratch(f"{run}/{name}", size),
                        f"usb-storage,bus=xhci.0,serial={name}", iops)
    for number, (size, iops) in enumerate(args.uas):
        name = f"uas{number}"
        options += ["-device", f"usb-uas,id={name},bus=xhci.0",
                    *disk(f"disk-{name}", scratch(f"{run}/{name}", size),
                          f"scsi-hd,bus={name}.0,serial={name}", iops)]
    return options


def counting(path):
    """Options that count the kernel's instructions into the file @path, or none for None."""
    if not path:
        return []
    name = "count-instructions"
    plugin = os.path.join(BUILD, f"{name}.so")
    os.makedirs(BUILD, exist_ok=True)
    done = subprocess.run([find_tool("gcc"), "-O2", "-shared", "-fPIC", "-o", plugin,
                           os.path.join(os.path.dirname(__file__), f"{name}.c")],
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise LabError(f"{name}.c does not compile: {done.stderr.splitlines()[0]}")
    return ["-plugin", f"file={quote(plugin)},out={quote(os.path.realpath(path))}"]


def kernel_arguments(args, console):
    """The kernel's command line."""
    words = [f"console={console}", *KERNEL_WORDS, *args.append]
    if args.virtual_time:
        # khugepaged would use the only CPU for milliseconds, every ten seconds.
        return ["nokaslr", "norandmaps", "transparent_hugepage=madvise", *words]
    # A guest that hangs while it is suspended says what it waits for, too.
    words += ["no_console_suspend"] if args.suspends else []
    return ["sysrq_always_enabled", f"nr_cpus={args.cpus}", NO_MITIGATIONS, *words]


class Machine(machine.Machine):
    """QEMU, with the host's time or in virtual time."""

    boot_modules = ("virtio_pci", "virtio_console")

    def __init__(self, args, kernel):
        super().__init__(args, kernel)
        self.root = "" if kernel.arch == arch.own() else foreign.find(kernel.arch.name)
        self.boots = 1 if args.kvm else BOOTS
        if not args.virtual_time:
            self.ports = (*self.ports, "console")
            self.boot_seconds = OWN_BOOT_SECONDS if kernel.tree else BOOT_SECONDS

    def folders(self, run):
        """Return [(tag, path, whether it is writable)] of the folders of the host that the guest
        mounts at the same path, the first one as its root. None if it has its files in memory. Of
        another architecture, the guest has the files of its own root, and the project's; @run: its
        folder with the command."""
        if self.args.in_memory:
            return []
        found = [("host", self.root or "/", False)]
        if self.root:
            found += [("project", PROJECT, False), ("run", run, False)]
            found += [("modules", self.kernel.modules, False)] if self.kernel.modules else []
        return [*found, ("build", BUILD, True)]

    def command(self, run, ports):
        """See machine.Machine."""
        args, to = self.args, self.kernel.arch
        return [find_tool(to.qemu), *hardware(args, self.kernel, run),
                *counting(args.count_instructions), *serial_ports(args, ports),
                *host_folders(self.folders(run)), *disks(args, to.pci, run),
                "-append", " ".join(kernel_arguments(args, to.console))]

    def identity(self):
        """See machine.Machine."""
        version = subprocess.run([find_tool(self.kernel.arch.qemu), "--version"], check=True,
                                 stdout=subprocess.PIPE).stdout
        return version + super().identity()
