# SPDX-License-Identifier: GPL-2.0
"""A running guest and its ports: the output of the command, the verdict that
scripts/lab-guest writes, and the console."""
import contextlib
import os
import re
import selectors
import socket
import sys
import time

from labvm import LabError

TIMEOUT, NO_GUEST, FAULT, LOST = 124, 125, 254, 255
# The bits of EFLAGS that a CPU can set. That bit 1 is set in every CPU proves nothing: for a task
# without registers in user space the kernel prints 00000000.
POSSIBLE_FLAGS = 0x3f7fd7
# The longest time, in seconds, that a guest under KVM needs until it is up.
KVM_SECONDS = 20
# The magic SysRq keys for a guest that hangs, all messages, blocked tasks and CPUs, and the
# seconds of output after each. On the serial line SysRq is a break, Ctrl-A b to QEMU, and a letter.
SYSRQ_KEYS = "9wl"
SYSRQ_SECONDS = 5
NO_KVM = "KVM does not work here; run without --kvm"
# A silent command is reported as running after so many seconds.
SILENCE_SECONDS = 60


class Progress:
    """Messages on stderr, unless quiet."""

    def __init__(self, quiet):
        self.quiet = quiet

    def say(self, text):
        """Print one line."""
        if not self.quiet:
            print(f"lab: {text}", file=sys.stderr, flush=True)


def emulator_fault(text):
    """Return what only a fault of the emulator can have printed in the kernel's log @text, as a
    sentence, or None: flags that no CPU can have; a trap of an int3 that is not there. The kernel
    puts one where it changes its code, and has all CPUs serialize before and after: none traps
    there later, unless it runs a translation of the code before the change."""
    for flags in re.findall(r"EFLAGS: ([0-9a-f]{8,16})\b", text):
        if int(flags, 16) & ~POSSIBLE_FLAGS:
            return f"QEMU corrupted the CPU's flags: EFLAGS {flags} cannot exist"
    trap = re.search(r"Oops: int3:(?:.*\n)+?.*RIP: \w+:(\S+)\s*\n.*Code: .*\b([0-9a-f]{2}) <", text)
    if trap and trap[2] != "cc":
        return (f"QEMU ran code that had been changed: int3 before {trap[1]}, where the kernel has "
                f"{trap[2]}")
    return None


class Guest:
    """A running guest: passes on its output and takes its verdict."""

    def __init__(self, machine, run, progress, prefix):
        """Start a @machine with the initramfs in the folder @run; @prefix: the words before the
        machine's command."""
        self.machine = machine
        self.args = machine.args
        self.run_dir = run
        self.progress = progress
        self.up = False
        self.loss = "the guest was lost before it was up"
        self.complaints = []
        self.verdicts = []
        self.pending = b""
        self.started = self.began = time.monotonic()
        self.ends = {}
        theirs = {}
        with open(f"{run}/console", "wb"):
            pass
        for name in machine.ports:
            self.ends[name], theirs[name] = socket.socketpair()
            theirs[name].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
        self.process = machine.start(run, theirs, prefix)
        for end in theirs.values():
            end.close()

    def take_verdict(self, data):
        """Take @data of the verdict port: lines of a word and its argument."""
        lines = (self.pending + data).split(b"\n")
        self.pending = lines.pop()
        for line in lines:
            word, _, rest = line.decode(errors="replace").partition(" ")
            if word == "up":
                self.up = True
                self.began = time.monotonic()
                self.loss = "the guest was lost"
                self.progress.say(f"up after {self.age():.1f} s")
                if log := os.environ.get("LAB_LOG"):
                    with open(log, "a", encoding="utf-8") as file:
                        print(f"{self.age():.1f}", file=file)
            elif word == "spoilt":
                self.loss = rest
            elif word == "log":
                self.complaints.append(rest)
            elif word == "verdict":
                self.verdicts.append(int(rest))

    def age(self):
        """Return the seconds since the machine was started."""
        return time.monotonic() - self.started

    def timed_out(self):
        """Return True if the command has exceeded --timeout, which does not count the seconds
        until the guest is up where these have a limit of their own."""
        return ((self.up or not self.machine.boot_seconds) and
                time.monotonic() - self.began > self.args.timeout)

    def overdue(self):
        """Return the reason why the guest must be ended now, or None."""
        if self.timed_out():
            return f"no end within {self.args.timeout} s"
        limit = self.machine.boot_seconds
        if not self.up and limit and self.age() > limit:
            return f"the guest was not up within {limit} s"
        return None

    def check_kvm(self):
        """Raise LabError if a guest under KVM does not start."""
        if self.args.kvm and not self.up and self.age() > KVM_SECONDS:
            raise LabError(f"no sign of the guest within {KVM_SECONDS} s: {NO_KVM}")

    def give_up(self, in_time):
        """End the guest. If it hangs (not @in_time), first have the kernel print its state
        on the console."""
        if not in_time and "console" in self.ends:
            self.print_state(self.ends["console"])
        self.stop()

    def print_state(self, end):
        """Have the kernel print its blocked tasks and its CPUs to the console's @end."""
        end.settimeout(0.5)
        with open(f"{self.run_dir}/console", "ab") as console:
            for key in SYSRQ_KEYS:
                until = time.monotonic() + SYSRQ_SECONDS
                with contextlib.suppress(OSError):
                    end.sendall(b"\x01b" + key.encode())
                while time.monotonic() < until:
                    with contextlib.suppress(TimeoutError):
                        data = end.recv(65536)
                        if not data:
                            return
                        console.write(data)

    def relay(self):
        """Pass on output until the guest has ended; return False if it is overdue."""
        with open(f"{self.run_dir}/console", "ab", buffering=0) as console:
            return self.relay_to({"out": sys.stdout.buffer, "err": sys.stderr.buffer,
                                  "console": console})

    def relay_to(self, out):
        """relay() to @out, {port: file}."""
        told = time.monotonic()
        with selectors.DefaultSelector() as selector:
            for name, end in self.ends.items():
                selector.register(end, selectors.EVENT_READ, name)
            while selector.get_map():
                self.check_kvm()
                self.machine.clear(self.process)
                reason = self.overdue()
                if reason:
                    self.loss = reason
                    return False
                for key, _ in selector.select(timeout=0.5):
                    data = key.fileobj.recv(65536)
                    if not data:
                        selector.unregister(key.fileobj)
                    elif key.data == "verdict":
                        self.take_verdict(data)
                    else:
                        out[key.data].write(data)
                        out[key.data].flush()
                        if key.data != "console":
                            told = time.monotonic()
                if time.monotonic() - told > SILENCE_SECONDS:
                    told = time.monotonic()
                    self.progress.say(f"running for {self.age():.0f} s")
        return True

    def stop(self):
        """End the machine if it still runs."""
        self.machine.kill(self.process)

    def read(self, name):
        """Return the text of a file in the run directory."""
        with open(f"{self.run_dir}/{name}", errors="replace", encoding="utf-8") as file:
            return file.read()

    def console_tail(self, lines=150):
        """Return the last @lines of the machine's output and of the console."""
        text = self.read("machine") + self.read("console")
        return text.replace("\r", "").strip().splitlines()[-lines:]

    def status(self, in_time):
        """Report what failed; return the lab's exit status. @in_time: of relay()."""
        status = self.report(in_time)
        fault = emulator_fault(self.read("console"))
        if fault and not self.args.kvm:
            show(fault, [])
            return FAULT
        return status

    def report(self, in_time):
        """Report what failed; return the status of the command or of its guest."""
        if not in_time:
            self.give_up(in_time)
            show(self.loss, self.console_tail())
            return TIMEOUT if self.timed_out() else NO_GUEST
        if len(self.verdicts) != 1:
            if self.args.kvm and not self.up:
                raise LabError(NO_KVM)
            show(self.loss, self.console_tail())
            return LOST if self.up else NO_GUEST
        status = self.verdicts[0]
        if self.complaints:
            show("the kernel complained", self.complaints)
            return status if status not in (0, 4) else 1
        return status


def show(headline, lines):
    """Report a failure, also if the lab is quiet."""
    print(f"lab: {headline}", *(f"    {line}" for line in lines),
          sep="\n", file=sys.stderr, flush=True)
