# SPDX-License-Identifier: GPL-2.0
"""QEMU's command line. The lab calls QEMU directly, without udev or an init system in the
guest: the guest boots in a quarter of the time that virtme-ng takes, and no service runs
beside a measurement."""
import contextlib
import fcntl
import os

from labvm import BUILD, CACHE, find_tool


def quote(path):
    """Return a path as QEMU's options want it."""
    return path.replace(",", ",,")


@contextlib.contextmanager
def one_cpu():
    """Reserve a CPU of the host; yield the words that run a program there. QEMU's threads
    take turns in virtual time, and to wake another CPU for each turn takes longer than the
    turn. With the policy SCHED_BATCH a woken thread does not preempt its waker, which holds the
    lock that the thread takes first. If guests have reserved all CPUs, this guest shares one."""
    cpus = sorted(os.sched_getaffinity(0))
    os.makedirs(CACHE, exist_ok=True)
    with contextlib.ExitStack() as stack:
        for cpu in cpus:
            lock = stack.enter_context(open(f"{CACHE}/cpu-{cpu}.lock", "w", encoding="utf-8"))
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
        else:
            cpu = cpus[os.getpid() % len(cpus)]
        yield [find_tool("taskset"), "-c", str(cpu), find_tool("chrt"), "-b", "0"]


def processors(args):
    """Options for the CPUs and what executes their instructions."""
    if args.kvm:
        return ["-smp", str(args.cpus), "-accel", "kvm", "-cpu", "host"]
    # For a machine that can only have one CPU, QEMU (before 8.1) translates no memory barrier,
    # though its devices run in other threads: a driver and its device then miss each other's
    # updates of a queue, and an I/O never ends. So allow a second CPU, which the kernel is told
    # to ignore. In virtual time the threads take turns.
    spare = ",maxcpus=2" if args.cpus == 1 and not args.virtual_time else ""
    # With ERMS or FSRM the kernel copies and clears memory byte by byte ("rep movsb"), which
    # processors do in large pieces, but QEMU with an instruction for each byte: 4 us for a
    # page in virtual time. Without, the kernel copies words.
    # QEMU before 8.0 may take an operand of an earlier instruction for the flags after
    # "cmpxchg16b". A pointer becomes the CPU's flags, and starts single-stepping in the kernel,
    # for example. The kernel does not use the instruction without CX16. In virtual time the
    # option would change all figures.
    cx16 = "" if args.virtual_time else ",cx16=off"
    return ["-smp", f"{args.cpus}{spare}", "-accel", "tcg",
            "-cpu", f"max,erms=off,fsrm=off{cx16}"]


def machine(args, kernel, run):
    """Options for the CPU, the memory and the kernel."""
    options = ["-nodefaults", "-no-reboot", "-no-user-config", "-display", "none",
               "-machine", "q35", "-m", f"{args.memory}M", *processors(args),
               "-kernel", kernel.image, "-initrd", f"{run}/initramfs",
               # Output has been written when the guest continues. With ioeventfd another
               # thread writes it, and the guest's wait for that depends on the host.
               "-device", "virtio-serial-pci,ioeventfd=off"]
    if args.virtual_time:
        # One instruction is one nanosecond, idle time is skipped, and the guest reads
        # neither the host's clock nor its random numbers. Recording stops QEMU (7.2) from
        # skipping the idle time of a CPU before it has counted the instructions that the
        # CPU executed last. QEMU can record one CPU only.
        record = ",rr=record,rrfile=/dev/null" if args.cpus == 1 else ""
        options += ["-icount", f"shift=0,sleep=off{record}", "-seed", "1",
                    "-rtc", "base=2026-01-01,clock=vm", "-serial", f"file:{run}/console"]
    return options


def serial_ports(ports):
    """Options for the @ports of protocol.Guest, {name: socket}."""
    options = []
    for number, (name, end) in enumerate(ports.items(), start=1):
        backend = f"socket,id={name},fd={end.fileno()}"
        if name == "console":
            options += ["-chardev", f"{backend},mux=on", "-serial", f"chardev:{name}"]
        else:
            options += ["-chardev", backend,
                        "-device", (f"virtserialport,nr={number},chardev={name},"
                                    f"name=lab.{name}")]
    return options


def host_folders(args):
    """Options for the folders of the host that the guest mounts: none in virtual time."""
    options = []
    for tag, path, only in () if args.virtual_time else (("host", "/", "on"),
                                                         ("build", BUILD, "off")):
        options += ["-fsdev", (f"local,id={tag},path={quote(path)},security_model=none,"
                               f"readonly={only},multidevs=remap"),
                    "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
    return options


def disk(name, path, device):
    """Options for a disk with the image at @path."""
    return ["-drive", (f"if=none,id={name},file={quote(path)},format=raw,"
                       "cache=unsafe,discard=unmap"),
            "-device", f"{device},drive={name}"]


def scratch(path, size):
    """Make an image of @size bytes; return its path."""
    with open(path, "wb") as file:
        file.truncate(size)
    return path


def disks(args, run):
    """Options for the disks; scratch images are files in @run."""
    options = []
    for number, image in enumerate(args.disk):
        path = image if isinstance(image, str) else scratch(f"{run}/disk{number}", image)
        options += disk(f"disk{number}", path, "virtio-blk-pci")
    for number, size in enumerate(args.nvme):
        path = scratch(f"{run}/nvme{number}", size)
        options += disk(f"nvme{number}", path, f"nvme,serial=lab{number}")
    return options


def kernel_arguments(args):
    """The kernel's command line."""
    # A busy host may stop an emulated CPU for longer than the 21 seconds after which the
    # kernel reports a stall; a real stall lasts.
    words = ["console=ttyS0", "rcupdate.rcu_cpu_stall_timeout=300",
             "watchdog_thresh=60", "loglevel=5", "log_buf_len=4M", "panic=-1",
             "oops=panic",
             # A third of the boot: self-tests of ciphers, a random number generator and a
             # type of keys, none of which a test uses.
             "cryptomgr.notests", "initcall_blacklist=jent_mod_init,init_encrypted",
             *args.append]
    if args.virtual_time:
        # khugepaged would use the only CPU for milliseconds, every ten seconds.
        return ["nokaslr", "norandmaps", "transparent_hugepage=madvise", *words]
    return ["sysrq_always_enabled", f"nr_cpus={args.cpus}", *words]


def command(args, kernel, run, ports):
    """Return QEMU's command line for a @kernel with the options of the lab (@args), the
    initramfs in the folder @run and the @ports of protocol.Guest."""
    return [find_tool("qemu-system-x86_64"), *machine(args, kernel, run), *serial_ports(ports),
            *host_folders(args), *disks(args, run),
            "-append", " ".join(kernel_arguments(args))]
