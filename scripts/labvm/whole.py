# SPDX-License-Identifier: GPL-2.0
"""A whole Debian system in a guest: boots with the newest kernel in its own /boot, runs commands,
drives are plugged and unplugged, and it boots again with what the last boot has left.

    with System("debian-12") as system:
        with system.boot() as guest:
            guest.run("dpkg -i /root/*.deb")
        with system.boot(drives=[Drive("disk", "S1", 64 << 20)]) as guest:
            print(guest.run("lsblk").out)

A guest that ends by itself, or has complaints in the kernel's log, raises LabError."""
import base64
import dataclasses
import json
import os
import re
import select
import shutil
import socket
import subprocess
import tempfile
import time
import types

from kbuild.kernel_btf import unpack_image
from labvm import BUILD, PROJECT, LabError, arch, debian, find_tool, qemu
from labvm.protocol import Progress, emulator_fault
from labvm.qmp import Qmp

# The longest time, in seconds, until a guest takes commands, and until it has shut down. An idle
# machine needs 40 s and 10 s.
UP_SECONDS, DOWN_SECONDS = 1800, 900
COMMAND_SECONDS = 900
# Images of a run, of / and /boot.
ROOT, BOOT = "root.qcow2", "boot.img"
FIRMWARE = "/usr/share/OVMF"
# What a panic or an oops prints; the rest of the kernel's log is judged in the guest.
LOST = re.compile(r"Kernel panic|Oops|BUG:|general protection fault")
HEALTH = """. /run/lab/kernel-health.sh
dmesg | grep -E -A 30 "$health_patterns"
[ "$(health_taint)" = 0 ] || echo "the kernel is tainted: $(</proc/sys/kernel/tainted)"
"""
# The bus of each kind of drive, and QEMU's device. USB sticks are of kind usb. A card is in a slot
# of its own from the boot on, and QEMU gives each the same serial number, CARD.
CARD = "0xdeadbeef"
DEVICES = {"scsi": {"driver": "scsi-hd", "bus": "scsi.0", "rotation_rate": 1},
           "usb": {"driver": "usb-storage", "bus": "usb.0", "removable": True},
           "virtio": {"driver": "virtio-blk-pci", "bus": "slot0"},
           "nvme": {"driver": "nvme", "bus": "slot1"},
           "card": {"driver": "sd-card"}}


@dataclasses.dataclass(frozen=True)
class Drive:
    """A drive of a guest: QEMU's name, serial number, size and kind."""
    name: str
    serial: str
    size: int = 64 << 20
    kind: str = "scsi"

    def node(self, folder):
        """Return QEMU's description of the data, a file in @folder; it stays when the drive is
        unplugged."""
        path = f"{folder}/{self.name}.img"
        with open(path, "ab") as file:
            file.truncate(self.size)
        data = {"driver": "file", "filename": path, "cache": {"no-flush": True}}
        return {"node-name": self.name, "driver": "raw", "file": data}

    def device(self):
        """Return QEMU's description of the device."""
        named = {} if self.kind == "card" else {"serial": self.serial}
        return {"id": self.name, "drive": self.name, **named, **DEVICES[self.kind]}


@dataclasses.dataclass(frozen=True)
class Done:
    """The end of a command: its exit status, and its output with its errors."""
    status: int
    out: str


def copy(path, folder):
    """Copy an image, without its holes, into a folder."""
    subprocess.run(["cp", "--sparse=always", path, folder], check=True)


class System:
    """A copy of a system's images, for as many boots as wanted, in a folder that is removed at the
    end. @kept: a folder of keep(), from which to go on instead of the fresh system; @uefi: with
    UEFI's firmware and its variables."""

    def __init__(self, name, kept=None, uefi=False, cpus=2, memory=2048, quiet=False):
        self.name = name
        self.arch = arch.ARCHES[debian.RELEASES[name].arch]
        self.kept = kept
        self.uefi = uefi
        self.args = types.SimpleNamespace(cpus=cpus, kvm=False, virtual_time=False)
        self.memory = memory
        self.progress = Progress(quiet)
        self.temporary = None
        self.folder = None

    def __enter__(self):
        images = self.kept or debian.find(self.name)
        base, kind = (f"{images}/{ROOT}", "qcow2") if self.kept else (f"{images}/root.img", "raw")
        os.makedirs(BUILD, exist_ok=True)
        self.temporary = tempfile.TemporaryDirectory(prefix="system.", dir=BUILD)
        self.folder = self.temporary.name
        subprocess.run([find_tool("qemu-img"), "create", "-q", "-f", "qcow2", "-F", kind,
                        "-b", base, f"{self.folder}/{ROOT}"], check=True)
        copy(f"{images}/{BOOT}", self.folder)
        if self.uefi:
            if not os.path.isdir(FIRMWARE):
                raise LabError("OVMF is missing: run scripts/setup systems")
            shutil.copy(f"{FIRMWARE}/OVMF_VARS.fd", self.folder)
        return self

    def __exit__(self, *_):
        self.temporary.cleanup()

    def keep(self, folder):
        """Keep what the last boot has left in a new folder, for other systems to go on from."""
        with tempfile.TemporaryDirectory(dir=os.path.dirname(folder)) as work:
            os.mkdir(f"{work}/new")
            for name in (ROOT, BOOT):
                copy(f"{self.folder}/{name}", f"{work}/new")
            os.rename(f"{work}/new", folder)

    def debugfs(self, request):
        """Return the output of a request to debugfs on the image of /boot."""
        return subprocess.run([find_tool("debugfs"), "-R", request, f"{self.folder}/{BOOT}"],
                              capture_output=True, text=True, check=True).stdout

    def newest(self):
        """Return the release of the newest kernel with an initramfs in /boot, which a boot loader
        takes: its menu is written after the initramfs."""
        listed = self.debugfs("ls -p /")
        names = [name for name in re.findall(r"/vmlinuz-([^/]+)/", listed)
                 if f"/initrd.img-{name}/" in listed]
        if not names:
            raise LabError("the system has no kernel with an initramfs in /boot")
        return max(names, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])

    def take_kernel(self):
        """Copy the newest kernel and its initramfs out of /boot; return its release."""
        done = subprocess.run([find_tool("e2fsck"), "-p", f"{self.folder}/{BOOT}"], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode > 1:
            raise LabError(f"the file system /boot is damaged: {done.stdout}")
        release = self.newest()
        for name, to in ((f"vmlinuz-{release}", "kernel"), (f"initrd.img-{release}", "initrd")):
            self.debugfs(f"dump /{name} {self.folder}/{to}")
            if not os.path.getsize(f"{self.folder}/{to}"):
                raise LabError(f"/boot/{name} is empty")
        # Without compression it boots faster; UEFI's firmware needs the file as it is.
        plain = b"" if self.uefi else unpack_image(f"{self.folder}/kernel")
        if plain:
            with open(f"{self.folder}/kernel", "wb") as file:
                file.write(plain)
        return release

    def boot(self, drives=(), append=()):
        """Boot the newest kernel with @drives and the kernel's arguments @append; return the
        running guest."""
        release = self.take_kernel()
        return Guest(self, release, drives, append)


def words(option, values):
    """Return an option of QEMU with its value as JSON."""
    return [option, json.dumps(values)]


class Guest:
    """A running guest, to be used in a with statement, at whose end it shuts down."""

    def __init__(self, system, release, drives, append):
        self.folder = system.folder
        self.arch = system.arch
        self.progress = system.progress
        self.started = time.monotonic()
        ends, theirs = {}, {}
        for name in ("agent", "qmp"):
            ends[name], theirs[name] = socket.socketpair()
        command = [*self.machine(system), *self.ports(theirs),
                   *(word for drive in drives for word in self.drive_options(drive)),
                   "-append", " ".join(self.arguments(append))]
        with open(f"{self.folder}/machine", "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log,
                                            pass_fds=[end.fileno() for end in theirs.values()])
        for end in theirs.values():
            end.close()
        self.port, self.pending = ends["agent"], b""
        self.qmp = Qmp(ends["qmp"])
        self.say(f"booting {system.name} with {release}")

    def machine(self, system):
        """Options for the machine and what it boots."""
        options = [find_tool(self.arch.qemu), "-nodefaults", "-no-reboot", "-no-user-config",
                   "-display", "none", "-machine", self.arch.machine, "-m", f"{system.memory}M",
                   *qemu.processors(system.args, self.arch), "-nic", "none",
                   "-kernel", f"{self.folder}/kernel", "-initrd", f"{self.folder}/initrd",
                   "-serial", f"file:{self.folder}/console",
                   "-device", "virtio-rng-pci", "-device", "virtio-serial-pci",
                   "-device", "virtio-scsi-pci,id=scsi", "-device", "qemu-xhci,id=usb"]
        for number in range(2):
            options += ["-device", f"pcie-root-port,id=slot{number},chassis={number + 1}"]
        for name, kind, image in (("root", "qcow2", ROOT), ("boot", "raw", BOOT)):
            options += words("-blockdev", {
                "node-name": name, "driver": kind,
                "file": {"driver": "file", "filename": f"{self.folder}/{image}",
                         "cache": {"no-flush": True}}})
            options += words("-device", {"driver": "virtio-blk-pci", "drive": name,
                                         "serial": f"lab-{name}"})
        if system.uefi:
            for name, only in ((f"{FIRMWARE}/OVMF_CODE.fd", "on"),
                               (f"{self.folder}/OVMF_VARS.fd", "off")):
                options += ["-drive", (f"if=pflash,format=raw,readonly={only},"
                                       f"file={qemu.quote(name)}")]
        return options

    @staticmethod
    def ports(ends):
        """Options for the agent's port and QEMU's monitor."""
        options = []
        for name, end in ends.items():
            options += ["-chardev", f"socket,id={name},fd={end.fileno()}"]
        options += ["-mon", "chardev=qmp,mode=control",
                    "-device", "virtserialport,nr=1,chardev=agent,name=lab.agent"]
        return options

    def drive_options(self, drive):
        """Options for a drive that is there at boot."""
        device = drive.device()
        slot = []
        if drive.kind == "card":
            slot = words("-device", {"driver": "sdhci-pci", "id": f"{drive.name}-slot"})
            device["bus"] = f"{self.arch.pci}/{drive.name}-slot/sd-bus"
        return [*words("-blockdev", drive.node(self.folder)), *slot, *words("-device", device)]

    def arguments(self, append):
        """The kernel's command line."""
        return ["root=LABEL=root", "ro", f"console={self.arch.console}", *qemu.KERNEL_WORDS,
                qemu.NO_MITIGATIONS, *append]

    def __enter__(self):
        try:
            self.begin()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.shut_down()
        finally:
            self.stop()

    def say(self, text):
        """Print a message."""
        self.progress.say(text)

    def begin(self):
        """Wait until the guest is up; give it the agent."""
        if self.line(UP_SECONDS) != b"ready":
            raise self.lost("the guest's agent does not answer")
        self.qmp.begin()
        with open(os.path.join(PROJECT, "scripts/labvm/agent.py"), "rb") as file:
            code = file.read()
        self.port.sendall(b"%d\n%s" % (len(code), code))
        with open(os.path.join(PROJECT, "scripts/kernel-health.sh"), "rb") as file:
            self.put("/run/lab/kernel-health.sh", file.read())
        state = self.run("systemctl is-system-running --wait", check=False).out.strip()
        self.say(f"up after {time.monotonic() - self.started:.0f} s, {state}")
        if state != "running":
            failed = self.run("systemctl --failed; journalctl -b -p err --no-pager", check=False)
            raise LabError(f"the system is {state}: {failed.out}")

    def lost(self, why):
        """Return an error with the console's end."""
        text = ""
        for name in ("machine", "console"):
            with open(f"{self.folder}/{name}", encoding="utf-8", errors="replace") as file:
                text += file.read()
        fault = emulator_fault(text)
        if fault:
            why += f"; {fault}"
        return LabError("\n    ".join([why, *text.replace("\r", "").splitlines()[-60:]]))

    def line(self, seconds):
        """Return the agent's next line."""
        until = time.monotonic() + seconds
        while b"\n" not in self.pending:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.port], [], [], left)[0]:
                raise self.lost(f"no answer of the guest within {seconds} s")
            data = self.port.recv(1 << 20)
            if not data:
                raise self.lost("the guest was lost")
            self.pending += data
        line, self.pending = self.pending.split(b"\n", 1)
        return line

    def request(self, seconds, **fields):
        """Yield the agent's answers to a request; the last one has a status."""
        self.port.sendall(json.dumps(fields).encode() + b"\n")
        until = time.monotonic() + seconds
        while True:
            answer = json.loads(self.line(max(1, until - time.monotonic())))
            yield answer
            if "status" in answer:
                return

    def run(self, command, seconds=COMMAND_SECONDS, check=True, hear=None):
        """Run a shell command in the guest, without a terminal; return its end. @check: fail if
        the command fails. @hear: is called with each piece of output, in bytes."""
        began, out = time.monotonic(), b""
        for answer in self.request(seconds, do="run", command=command):
            piece = base64.b64decode(answer.get("out", ""))
            out += piece
            if hear and piece:
                hear(piece)
        status, text = answer["status"], out.decode(errors="replace")
        first = command.strip().split("\n")[0]
        self.say(f"{time.monotonic() - began:5.1f} s, status {status}: {first[:90]}")
        if check and status:
            raise LabError(f"status {status} of {command}:\n{text}")
        return Done(status, text)

    def put(self, path, data, mode=0o644):
        """Write a file in the guest; @data: its bytes."""
        self.transfer(path, do="put", mode=mode, data=base64.b64encode(data).decode())

    def get(self, path):
        """Return the bytes of a file in the guest."""
        return self.transfer(path, do="get")

    def transfer(self, path, **fields):
        """Write or read a file in the guest; return the answer's data."""
        answer = list(self.request(COMMAND_SECONDS, path=path, **fields))[-1]
        data = base64.b64decode(answer["data"])
        if answer["status"]:
            raise LabError(f"{path} of the guest: {data.decode()}")
        return data

    def plug(self, drive):
        """Plug a drive in."""
        self.qmp.execute("blockdev-add", **drive.node(self.folder))
        self.qmp.execute("device_add", **drive.device())

    def unplug(self, drive):
        """Unplug a drive."""
        self.qmp.execute("device_del", id=drive.name)
        self.qmp.wait_for("DEVICE_DELETED", device=drive.name)
        self.qmp.execute("blockdev-del", **{"node-name": drive.name})

    def judge(self):
        """Raise LabError if the kernel has complained."""
        complaints = self.run(HEALTH, check=False).out
        if complaints:
            raise LabError(f"the kernel complained:\n{complaints}")

    def shut_down(self):
        """Judge the kernel's log, then power the guest off."""
        self.judge()
        self.run("systemctl poweroff --no-block")
        try:
            self.process.wait(DOWN_SECONDS)
        except subprocess.TimeoutExpired:
            raise self.lost(f"the guest did not shut down within {DOWN_SECONDS} s") from None
        with open(f"{self.folder}/console", encoding="utf-8", errors="replace") as file:
            console = file.read()
        if LOST.search(console) or "reboot: Power down" not in console:
            raise self.lost("the guest was lost while it shut down")
        self.say(f"down after {time.monotonic() - self.started:.0f} s")

    def stop(self):
        """End the machine if it still runs."""
        self.process.kill()
        self.process.wait()
