# SPDX-License-Identifier: GPL-2.0
"""The schedulers of the kernel; the scheduler of a drive and its settings."""
import contextlib
import errno
import os
import pathlib
import re
import subprocess
import time
from collections.abc import Iterable

from ssd_common.drive import Drive, chosen, read
from ssd_common.former import SETTLE_S, write
from ssd_common.packages import with_sbin
from ssd_common.policies import NAMES, POLICIES
from ssd_ctl import CtlError
from ssd_ctl.choice import ALIASES, QUEUE, VALUE, Choice

OURS = NAMES
# The oldest kernel that ours are built for, as dkms.conf has it.
OLDEST = (6, 1)
# Where the package ssd-iosched-dkms has the source of ours.
SOURCE = pathlib.Path("/usr/src")
KERNELS = ("mq-deadline", "kyber", "bfq")
NONE = "none"
ALL = (NONE, *KERNELS, *OURS)
# Where the kernel's modules are, by release.
INSTALLED = pathlib.Path("/lib/modules")
# A tunable of each that no other one has.
MARKS = {**{name: policy.mark for name, policy in POLICIES.items()},
         "mq-deadline": "writes_starved", "kyber": "read_lat_nsec", "bfq": "low_latency"}
MODULES = pathlib.Path("/sys/module")
LOADED, MODULE, MISSING = "loaded", "module", "missing"
# Of schedulers of the kernel, by Documentation/block/ and their sources; not bfq's timeout_sync,
# which depends on the kernel's HZ.
KERNELS_DEFAULTS = {
    "mq-deadline": {"read_expire": "500", "write_expire": "5000", "writes_starved": "2",
                    "front_merges": "1", "fifo_batch": "16", "prio_aging_expire": "10000"},
    "kyber": {"read_lat_nsec": "2000000", "write_lat_nsec": "10000000"},
    "bfq": {"fifo_expire_sync": "125", "fifo_expire_async": "250", "back_seek_max": "16384",
            "back_seek_penalty": "2", "max_budget": "0", "strict_guarantees": "0",
            "low_latency": "1", "slice_idle_us": "8000"},
}
WBT, LIMIT = "wbt_lat_usec", "max_sectors_kb"
# The kernel replaces it by its default.
USUAL = "-1"
# Schedulers under which the kernel switches writeback throttling off by itself.
UNTHROTTLED = ("bfq",)
# {tunable: another one that shows the same value, in a smaller unit}.
SAME = {"slice_idle": "slice_idle_us"}


def present(drive: Drive) -> str:
    """Return the name of a drive's scheduler."""
    return chosen(read(drive.queue / "scheduler"))


def offered(drive: Drive) -> list[str]:
    """Return the schedulers that the kernel offers for a drive without loading a module."""
    return read(drive.queue / "scheduler").replace("[", "").replace("]", "").split()


def with_module(names: Iterable[str]) -> set[str]:
    """Return those of these schedulers whose module modprobe finds for this kernel."""
    command = ["modprobe", "--all", "--show-depends", *(f"{name}-iosched" for name in names)]
    try:
        done = subprocess.run(command, env=with_sbin(), check=False, capture_output=True, text=True)
    except FileNotFoundError:
        return set()
    found = re.findall(r"([^/\s]+)\.ko\S*\s*$|^builtin (\S+)", done.stdout, re.MULTILINE)
    return {(file or builtin).replace("_", "-").removesuffix("-iosched") for file, builtin in found}


def throttling(name: str, before: str, value: str) -> str:
    """Return what to set writeback throttling to, in us, for a scheduler whose choice does not name
    it: as after a boot, or as the user has it. @before: the scheduler under which it is @value."""
    if name in UNTHROTTLED:
        return "0"
    return USUAL if before in UNTHROTTLED and value == "0" else value


def aliased() -> set[str]:
    """Return the schedulers that modules say they are: the kernel loads NAME by NAME-iosched."""
    text = read(INSTALLED / os.uname().release / "modules.alias")
    return set(re.findall(r"^alias ([\w-]+)-iosched ", text, re.MULTILINE))


def support(drives: list[Drive]) -> dict[str, str]:
    """Return {scheduler: LOADED, MODULE or MISSING} of ours, of the kernel's, and of others that
    the kernel has."""
    there = {name for drive in drives for name in offered(drive)}
    known = (*OURS, *KERNELS)
    more = sorted((there | aliased()) - {NONE, *known, *ALIASES})
    modules = with_module(name for name in (*known, *more) if name not in there)
    return {name: LOADED if name in there else MODULE if name in modules else MISSING
            for name in (*known, *more)}


def available(drive: Drive) -> list[str]:
    """Return the schedulers that can be selected for a drive: none, the kernel's, others, then
    ours."""
    found = {name for name, state in support([drive]).items() if state != MISSING}
    return [NONE, *(name for name in KERNELS if name in found),
            *sorted(found - {*KERNELS, *OURS}), *(name for name in OURS if name in found)]


def tunables(drive: Drive) -> dict[str, str]:
    """Return the tunables of a drive's scheduler, {name: value}."""
    files = {file.name: chosen(read(file)) for file in sorted((drive.queue / "iosched").glob("*"))}
    return {name: value for name, value in files.items() if value}


def defaults(name: str) -> dict[str, str]:
    """Return the defaults of a scheduler's tunables, of those that are known: of ours, the
    parameters of the module."""
    if name not in OURS:
        return KERNELS_DEFAULTS.get(name, {})
    files = (MODULES / f"{name}_iosched/parameters").glob("*")
    # A parameter that is true or false is shown otherwise than a tunable.
    return {file.name: {"Y": "1", "N": "0"}.get(value, value) for file in files
            if (value := chosen(read(file)))}


def changed(drive: Drive) -> dict[str, str]:
    """Return the tunables of a drive's scheduler that differ from the default."""
    known = defaults(present(drive))
    return {name: value for name, value in tunables(drive).items()
            if known.get(name, value) != value}


def read_choice(drive: Drive) -> Choice:
    """Return what a drive has now, with all tunables that are a word."""
    scheduler = present(drive)
    if not scheduler:
        raise CtlError(f"{drive.path} has disappeared")
    queue = {name: read(drive.queue / name) for name in QUEUE}
    return Choice(scheduler, {name: value for name, value in tunables(drive).items()
                              if VALUE.fullmatch(value)},
                  {name: value for name, value in queue.items() if value})


def holds(drive: Drive, choice: Choice) -> bool:
    """Return true if a drive has a choice, as far as it can, and no other tunables."""
    choice = possible(drive, choice)
    named = {SAME.get(name, name) for name in choice.tunables}
    return (present(drive) == choice.scheduler and not differing(drive, choice) and
            not set(changed(drive)) - named)


def possible(drive: Drive, choice: Choice) -> Choice:
    """Return a choice without those settings of the queue that go with its scheduler but that the
    drive has not."""
    usual = Choice.recommended(choice.scheduler).queue
    return Choice(choice.scheduler, choice.tunables, {
        name: value for name, value in choice.queue.items()
        if usual.get(name) != value or (drive.queue / name).exists()})


def held(drive: Drive, choice: Choice) -> Choice:
    """Return the part of a choice that a drive has; of another scheduler nothing."""
    if present(drive) != choice.scheduler:
        return Choice(choice.scheduler)
    lost = differing(drive, choice)
    return Choice(choice.scheduler,
                  {name: value for name, value in choice.tunables.items()
                   if f"iosched/{name}" not in lost},
                  {name: value for name, value in choice.queue.items() if name not in lost})


def as_shown(drive: Drive, choice: Choice) -> Choice:
    """Return a choice that a drive has, with the values as the kernel shows them."""
    queue = {name: read(drive.queue / name) or value for name, value in choice.queue.items()}
    now = tunables(drive)
    return Choice(choice.scheduler,
                  {name: now.get(name, value) for name, value in choice.tunables.items()}, queue)


def differing(drive: Drive, choice: Choice) -> dict[str, str]:
    """Return the settings of a choice that a drive has not."""
    return {file: value for file, value in choice.settings().items()
            if chosen(read(drive.queue / file)) != value}


def write_all(drive: Drive, settings: dict[str, str]) -> dict[str, OSError]:
    """Write settings; return those that the kernel does not take. One that depends on others is
    written again after them."""
    failed: dict[str, OSError] = {}
    left = settings
    while left:
        failed = {}
        for file, value in left.items():
            try:
                write(drive, file, value)
            except OSError as error:
                failed[file] = error
        if len(failed) == len(left):
            break
        left = {file: left[file] for file in failed}
    return failed


def select(drive: Drive, name: str):
    """Select a scheduler; the kernel loads its module."""
    try:
        write(drive, "scheduler", name)
    except OSError as error:
        raise CtlError(refusal(drive, name, error)) from None
    if present(drive) != name:
        raise CtlError(f"{drive.path} takes no scheduler: it has {present(drive)} after {name} was "
                       "selected")


def refusal(drive: Drive, name: str, error: OSError) -> str:
    """Return why a scheduler cannot be selected."""
    if not drive.exists():
        return f"{drive.path} has disappeared"
    if error.errno not in (errno.EINVAL, errno.ENOENT):
        return f"{drive.path} does not take {name}: {error.strerror}"
    there = available(drive)
    if name in there:
        return (f"{drive.path} does not take {name}, whose module is there: see what the kernel "
                "says (dmesg); with Secure Boot a module needs a signature that the machine "
                "trusts: mokutil --import /var/lib/dkms/mok.pub, then boot")
    return (f"the running kernel has no scheduler {name}: "
            f"{remedy(name) or 'it has ' + ' '.join(there)}")


def remedy(name: str) -> str:
    """Return what to do about a scheduler that is missing, "" if no kernel has it."""
    release = os.uname().release
    if name not in OURS:
        return "the kernel has no module of this name" if name in KERNELS else ""
    if tuple(map(int, re.findall(r"\d+", release)[:2])) < OLDEST:
        return f"they need Linux {'.'.join(map(str, OLDEST))} or newer"
    source = max(SOURCE.glob("ssd-iosched-*"), default=None)
    if source:
        # DKMS may have forgotten it, with the last kernel that had it: no autoinstall.
        return (f"install linux-headers-{release}, then dkms install "
                f"ssd-iosched/{source.name.removeprefix('ssd-iosched-')} -k {release}")
    return (f"install ssd-iosched-dkms and linux-headers-{release}, or run make install in the "
            "source")


def complaint(drive: Drive, file: str, value: str, error: OSError) -> str:
    """Return why a setting cannot be made."""
    name = file.removeprefix("iosched/")
    if not drive.exists():
        return f"{drive.path} has disappeared"
    if not (drive.queue / file).exists():
        if name == file:
            return f"{drive.path} has no {name}"
        has = " ".join(tunables(drive)) or "no tunables"
        queue = " ".join(each for each in QUEUE if (drive.queue / each).exists())
        return f"{present(drive)} has no {name}: it has {has}; the queue has {queue}"
    return f"{name} does not take {value}: {error.strerror}"


def multipaths(drive: Drive) -> list[str]:
    """Return the names of the multipath devices of device-mapper that a drive is a path of."""
    return [path.name for path in drive.sysfs.glob("holders/*")
            if read(path / "dm/uuid").startswith("mpath-")]


def check_limit(drive: Drive, choice: Choice):
    """Raise CtlError if a choice has a larger limit than the drive: some kernels silently set the
    drive's."""
    wanted = choice.queue.get(LIMIT, "")
    most = read(drive.queue / "max_hw_sectors_kb")
    if wanted.isdecimal() and most.isdecimal() and int(wanted) > int(most):
        raise CtlError(f"{LIMIT} does not take {wanted}: {drive.path} takes {most} at most")


def change(drive: Drive, choice: Choice):
    """Select a choice; a failure leaves a part of it."""
    check_limit(drive, choice)
    above = multipaths(drive)
    if above and choice.tunables.get("split", NONE) != NONE:
        raise CtlError(f"{drive.path} is a path of /dev/{above[0]}, whose requests exceed what "
                       f"split allows, and fail: select {choice.scheduler} on /dev/{above[0]}")
    if present(drive) == choice.scheduler != NONE:
        # What is not named gets its default.
        select(drive, NONE)
    if present(drive) != choice.scheduler:
        select(drive, choice.scheduler)
    # What is written outlasts the scheduler: what bfq has switched off would not come back after
    # it, nor would a limit follow the driver's. Only nr_requests is the scheduler's own.
    settings = {file: value for file, value in choice.settings().items()
                if file not in QUEUE or file == "nr_requests" or read(drive.queue / file) != value}
    for file, error in write_all(drive, settings).items():
        raise CtlError(complaint(drive, file, settings[file], error))


def apply(drive: Drive, choice: Choice):
    """Select a choice; a failure leaves what was there before. Tunables that the choice does not
    name get their defaults; settings of the queue that it does not name stay."""
    before = read_choice(drive)
    try:
        change(drive, choice)
    except BaseException:
        with contextlib.suppress(CtlError):
            restore(drive, before)
        raise


def restore(drive: Drive, before: Choice) -> list[str]:
    """Select what read_choice() has returned; return the settings that the kernel did not take
    back."""
    if present(drive) != before.scheduler:
        select(drive, before.scheduler)
        # Some schedulers change settings of the queue a moment later.
        time.sleep(SETTLE_S)
    # A setting may change another one that did not differ.
    write_all(drive, differing(drive, before))
    return sorted(write_all(drive, differing(drive, before)))
