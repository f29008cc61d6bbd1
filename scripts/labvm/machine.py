# SPDX-License-Identifier: GPL-2.0
"""What the machines have in common: how one is started and ended, and the CPU it runs on."""
import contextlib
import fcntl
import os
import subprocess

from labvm import CACHE, find_tool


@contextlib.contextmanager
def one_cpu(share):
    """Reserve a CPU of the host; yield the words that run a program there. The threads or
    processes of a machine take turns in virtual time, and to wake another CPU for each turn
    takes longer than the turn. With the policy SCHED_BATCH a woken thread does not preempt its
    waker, which holds the lock that the thread takes first. If guests have reserved all CPUs,
    this guest shares one (@share) or runs on any."""
    cpus = sorted(os.sched_getaffinity(0))
    os.makedirs(CACHE, exist_ok=True)
    with contextlib.ExitStack() as stack:
        for cpu in cpus:
            lock = stack.enter_context(open(f"{CACHE}/cpu-{cpu}.lock", "w", encoding="utf-8"))
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
        else:
            cpu = cpus[os.getpid() % len(cpus)] if share else ",".join(map(str, cpus))
        yield [find_tool("taskset"), "-c", str(cpu), find_tool("chrt"), "-b", "0"]


class Machine:
    """A machine that runs a @kernel with the options of the lab (@args).

    ports         names of the guest's ports
    root          folder with the guest's files; "": the host's root
    boot_modules  modules that the initramfs loads of a guest with its files in memory, for the
                  ports
    boot_seconds  the longest time that a guest needs until it is up; None: unlimited
    boots         the number of tries to boot a guest
    share_cpu     see one_cpu()
    """

    ports = ("out", "err", "verdict")
    root = ""
    boot_modules = ()
    boot_seconds = None
    boots = 1
    share_cpu = True

    def __init__(self, args, kernel):
        self.args = args
        self.kernel = kernel

    def command(self, run, ports):
        """Return the command line; @run: the folder with the initramfs, @ports: {name: socket}."""
        raise NotImplementedError

    def options(self):
        """Return the words of the command line that decide what a guest does, without names of
        files that differ between runs."""
        return [word for word in self.command("", {}) if word != self.kernel.image]

    def identity(self):
        """Return bytes that differ if a guest with the same kernel and files may do something
        else."""
        return repr(self.options()).encode()

    def start(self, run, ports, prefix, **how):
        """Start the machine; return its process. @prefix: the words before the command line,
        @how: arguments of Popen(). What it prints is left in the file machine of @run."""
        how.setdefault("pass_fds", [end.fileno() for end in ports.values()])
        with open(f"{run}/machine", "wb") as log:
            return subprocess.Popen(prefix + self.command(run, ports), stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=log, **how)

    def clear(self, process):
        """End what a machine that has ended by itself left behind."""

    def kill(self, process):
        """End the machine if it still runs."""
        process.kill()
        process.wait()
