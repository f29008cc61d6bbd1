#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# tuned itself, of Debian's package and not installed, applies the example of a profile to made-up
# drives: pass for the card and for the QLC SSD that the profile names, and nothing for others; what
# ssdctl reads in this profile and in others is what tuned does
# timeout: 300
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/common")]

from checks import check, run  # noqa: E402  (in a folder added above)
from host import SKIP  # noqa: E402
from made_drives import made, write  # noqa: E402
from ssd_ctl.setters import files, tuned  # noqa: E402

PROFILE = "ssd-iosched"
EXAMPLE = PROJECT / f"Documentation/examples/tuned/{PROFILE}/tuned.conf"
PACKAGES = ("tuned", "python3-pyudev", "python3-linux-procfs")
FETCH = 'cd "$1"; shift; apt_download "$@" || { apt_update && apt_download "$@"; }'
# Two SATA SSDs, of which the first has QLC flash, and a card.
NAMES = ("sdg", "sdf", "nvme0n1", "mmcblk0")
BEFORE = "none [mq-deadline] pass"
# It writes to nothing but made-up files, and may load no module.
BOX = ("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", "/run", "--tmpfs", "/var",
       "--unshare-net", "--die-with-parent", "--cap-drop", "ALL", "--chdir", "/")


def fetched(folder):
    """Fetch and unpack tuned and what it needs."""
    if not shutil.which("bwrap"):
        print("bwrap is missing: scripts/setup lab")
        sys.exit(SKIP)
    done = subprocess.run(["bash", "-c", f". scripts/common.sh; require_debian; {FETCH}", "-",
                           folder, *PACKAGES], cwd=PROJECT, capture_output=True, text=True,
                          check=False)
    if done.returncode:
        print(f"no {' and '.join(PACKAGES)}: {done.stderr.strip().splitlines()[-1]}")
        sys.exit(SKIP)
    for package in folder.glob("*.deb"):
        run("dpkg-deb", "-x", str(package), str(folder))
    return folder


def drives_in(sys_folder):
    """Make the drives as libudev and tuned look for them."""
    found = []
    for name in NAMES:
        drive = made(sys_folder / "devices", name)
        place = pathlib.Path("/sys") / drive.sysfs.relative_to(sys_folder)
        write(drive.sysfs, {"uevent": f"MAJOR=8\nMINOR=0\nDEVNAME={name}\nDEVTYPE=disk",
                            "removable": "0", "queue/scheduler": BEFORE})
        (drive.sysfs / "subsystem").symlink_to("/sys/class/block")
        for listed in ("class/block", "block"):
            (sys_folder / listed).mkdir(parents=True, exist_ok=True)
            (sys_folder / listed / name).symlink_to(place)
        found.append(drive)
    return found


def applied(package, folder, profile):
    """Have tuned apply a profile in a machine with such drives; return {drive: scheduler}, and what
    ssdctl expects, with what tuned said."""
    drives = drives_in(folder / "sys")
    # The folder of profiles of tuned 2.23 and newer is another one.
    places = "tuned/profiles" if (package / "usr/lib/tuned/profiles").is_dir() else "tuned"
    there = folder / "etc" / places
    shutil.copytree(package / "etc/tuned", folder / "etc/tuned")
    shutil.copytree(package / "usr/lib" / places / "balanced", there / "balanced")
    write(there, {f"{PROFILE}/tuned.conf": profile})
    write(folder / "etc/tuned", {"active_profile": PROFILE,
                                 # Apply the profile and end.
                                 "tuned-main.conf": "daemon = 0"})
    done = subprocess.run(
        [*BOX, "--bind", folder / "sys", "/sys", "--bind", folder / "etc", "/etc",
         sys.executable, "-B", package / "usr/sbin/tuned", "--profile", PROFILE],
        env={**os.environ, "PYTHONPATH": str(package / "usr/lib/python3/dist-packages"),
             # libudev wants the kernel's own files in /sys otherwise.
             "SYSTEMD_DEVICE_VERIFY_SYSFS": "0"},
        capture_output=True, text=True, timeout=120, check=False)
    said = done.stdout + done.stderr
    check(done.returncode == 0 and f"static tuning from profile '{PROFILE}' applied" in said,
          f"tuned applies it, status {done.returncode} {said[-500:] if done.returncode else ''}")
    set_now = {drive.name: (drive.queue / "scheduler").read_text().strip() for drive in drives}
    files.ROOT = folder
    return set_now, {drive.name: next((each.value for each in tuned.of(drive)
                                       if each.file == "scheduler"), BEFORE) for drive in drives}


def main():
    example = EXAMPLE.read_text()
    # As the user does: the names of this machine.
    mine = example.replace("devices=sda", "devices=sdg")
    check(mine != example, "the profile names drives")
    with tempfile.TemporaryDirectory() as name:
        package = fetched(pathlib.Path(name))
        for what, profile, *meant in (
                ("the example", mine, "sdg", "mmcblk0"),
                # The section of all disks in "balanced" is empty.
                ("without the priority", mine.replace("priority=-1\n", ""), "mmcblk0"),
                ("all disks but one", "[main]\ninclude=-absent;balanced\n[disk]\ndevices=!sdf\n"
                 "elevator=pass # always\n", "sdg", "nvme0n1"),
                ("neither on nor off", "[disk]\nenabled=yes\nelevator=pass\n"),
                ("by two sections", "[main]\ninclude=balanced\n[disk]\ndevices=nvme*, sdx\n"
                 "elevator=pass\n[sysfs]\n/sys/block/sd*/queue/scheduler=none\n", "nvme0n1")):
            with tempfile.TemporaryDirectory() as folder:
                found, expected = applied(package, pathlib.Path(folder), profile)
            check({name for name, value in found.items() if value == "pass"} == {*meant},
                  f"{what}: pass for {meant} {found}")
            check(expected == found, f"{what}, as ssdctl reads it: {expected}")


if __name__ == "__main__":
    main()
