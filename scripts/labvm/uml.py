# SPDX-License-Identifier: GPL-2.0
"""User-Mode Linux's command line. The kernel is a process of the host, and so is each process
of the guest, traced by the kernel. In its mode of time travel with an infinitely fast CPU the
kernel counts time itself: instructions take none of it, and idle time is skipped."""
import contextlib
import os
import shutil
import signal

from labvm import find_tool, machine

# The guest's clock begins on 2026-01-01, as with QEMU.
START_NS = 1767225600 * 10**9
# The file descriptors of the ports in the kernel's process, from this number on. The kernel
# takes a seed of its random numbers from its command line, which must not differ between runs.
FIRST_PORT = 100


def memory_folder(args, run):
    """Return the folder for the file that is the guest's memory, of which the guest executes
    pages: a file system in memory if it has room, otherwise @run."""
    with contextlib.suppress(OSError):
        usable = not os.statvfs("/dev/shm").f_flag & os.ST_NOEXEC
        if usable and shutil.disk_usage("/dev/shm").free >= args.memory << 20:
            return "/dev/shm"
    return run


class Machine(machine.Machine):
    """User-Mode Linux in virtual time."""

    # To wait for a CPU costs its processes more than to move between CPUs.
    share_cpu = False

    def command(self, run, ports):
        """See machine.Machine. The ports are serial lines that the host never writes to. Names
        of files are relative to @run: the guest's processes find some of these words in their
        environment. setarch: addresses in the kernel must not differ between runs. prlimit: a
        kernel that panics aborts. setpriv: a kernel whose lab is killed gets SIGTERM, and ends
        its processes."""
        lines = [f"ssl{number}=null,fd:{FIRST_PORT + number}" for number in
                 range(len(self.ports))]
        return [find_tool("setpriv"), "--pdeathsig", "TERM", find_tool("prlimit"), "--core=0",
                find_tool("setarch"), "-R", self.kernel.image,
                f"mem={self.args.memory}M", "initrd=initramfs", "uml_dir=uml", "umid=lab",
                "con=null", "con0=null,fd:1", "ssl=null", *lines,
                "time-travel=inf-cpu", f"time-travel-start={START_NS}", "noreboot", "norandmaps",
                "loglevel=5", "log_buf_len=4M", "oops=panic", *self.args.append]

    def start(self, run, ports, prefix, **how):
        """See machine.Machine. The guest's processes are in the kernel's process group, but of the
        lab's session, whose share of the CPUs is theirs."""
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": run,
                       "TMPDIR": memory_folder(self.args, run)}
        numbers = [os.dup2(end.fileno(), FIRST_PORT + number) for number, end in
                   enumerate(ports.values())]
        try:
            return super().start(run, ports, prefix, pass_fds=numbers, env=environment, cwd=run,
                                 process_group=0, **how)
        finally:
            for number in numbers:
                os.close(number)

    def clear(self, process):
        """See machine.Machine. If the kernel is killed, its processes survive it, and keep the
        ports open."""
        if process.returncode is None and os.waitid(
                os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            self.kill(process)

    def kill(self, process):
        """See machine.Machine. A process that has ended keeps its number, which is the
        group's, until wait()."""
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
