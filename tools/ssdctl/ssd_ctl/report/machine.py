# SPDX-License-Identifier: GPL-2.0
"""What a report says of the machine: versions, the kernel and its configuration, the modules, DKMS.
"""
import gzip
import os
import re

from ssd_common.version import VERSION
from ssd_ctl import schedulers
from ssd_ctl.report import Section
from ssd_ctl.report.bounded import (
    MOST_TEXT, Budget, answer, answers, names_in, output_of, text_of)
from ssd_ctl.report.facts import note, read_all, shown

# Tests have another one.
ROOT = "/"
OF_SYSTEM = ("PRETTY_NAME", "ID", "VERSION_ID", "BUILD_ID", "VARIANT_ID")
OF_KERNEL = {"command line": "proc/cmdline", "tainted": "proc/sys/kernel/tainted",
             "up for s, idle for s": "proc/uptime", "load": "proc/loadavg",
             "waiting for I/O": "proc/pressure/io", "real-time": "sys/kernel/realtime",
             "lockdown": "sys/kernel/security/lockdown",
             "hung tasks are told after s": "proc/sys/kernel/hung_task_timeout_secs",
             "clock": "sys/devices/system/clocksource/clocksource0/current_clocksource",
             "CPUs": "sys/devices/system/cpu/online",
             "NUMA nodes": "sys/devices/system/node/online",
             "dirty ratio": "proc/sys/vm/dirty_ratio", "dirty bytes": "proc/sys/vm/dirty_bytes",
             "dirty background ratio": "proc/sys/vm/dirty_background_ratio"}
MEMORY = re.compile(r"^(MemTotal|MemAvailable|Dirty|Writeback|SwapTotal):\s*(.+)$", re.M)
# Options of the kernel that decide whether and how the modules are built, loaded and watched.
OPTIONS = re.compile(
    r"^CONFIG_(?:\w*IOSCHED\w*|BLK_(?!DEV_)\w+|BLOCK|BLK_DEV_(?:NVME|ZONED|SD|THROTTLING|IO_TRACE)|"
    r"NVME_MULTIPATH|SCSI_MQ_DEFAULT|MMC_BLOCK|DEBUG_INFO_(?:BTF|NONE|DWARF)\w*|DEBUG_FS\w*|"
    r"BPF_SYSCALL|PREEMPT\w*|HZ|NO_HZ\w*|MODULE_(?:SIG|FORCE)\w*|MODVERSIONS|TRIM_UNUSED\w*|LTO_\w+|"
    r"CFI_\w+|CC_(?:IS|VERSION)\w*|PAHOLE_VERSION|PROVE_LOCKING|KASAN|KCSAN|DETECT_HUNG_TASK|"
    r"SOFTLOCKUP_DETECTOR|SECURITY_LOCKDOWN_LSM|LOCK_DOWN_\w+|RANDSTRUCT_\w+|64BIT|ARM64_\w+_PAGES)=.+$",
    re.M)
# Seconds for a program, which may have to be read from a slow drive.
PROGRAM_S = 8
# {what a program tells: its command}
PROGRAMS = {"udev": ["udevadm", "--version"], "fio": ["fio", "--version"],
            **{f"file of {name}": ["modinfo", "-F", "filename", f"{name}-iosched"]
               for name in schedulers.OURS}}
# Bytes of the configuration.
MOST_CONFIG = 4 << 20
DKMS = "var/lib/dkms/ssd-iosched"
# Lines of DKMS's log, which ends with what failed, and where it may be.
LOG_LINES = 40
OF_MODULE = ("version", "srcversion", "taint", "refcnt", "initstate")


def at(path: str) -> str:
    """Return where a file is, of which the path is relative to the root."""
    return os.path.join(ROOT, path)


def versions(budget: Budget) -> Section:
    """Return the versions of ssdctl and of the system."""
    system = os.uname()
    made = Section("versions", {"ssdctl": VERSION, "kernel": system.release,
                                "built": system.version, "machine": system.machine})
    found = answer(lambda: text_of(at("etc/os-release")), budget)
    pairs = (line.partition("=") for line in str(found.value or "").splitlines())
    known = {name: value.strip("\"'") for name, _, value in pairs if name in OF_SYSTEM}
    made.facts["distribution"] = ", ".join(f"{name} {known[name]}" for name in OF_SYSTEM
                                           if name in known) or f"({found.why or 'not known'})"
    made.facts["page size"] = str(os.sysconf("SC_PAGE_SIZE"))
    note(made, "distribution", found)
    return made


def kernel(budget: Budget) -> Section:
    """Return how the kernel runs."""
    made = Section("kernel")
    read_all(made, {name: at(path) for name, path in OF_KERNEL.items()}, budget)
    memory = answer(lambda: text_of(at("proc/meminfo")), budget)
    made.facts["memory"] = ", ".join(f"{name} {value}" for name, value in
                                     MEMORY.findall(str(memory.value)))
    return made


def config_text() -> str:
    """Return the options of the kernel's configuration that matter here, from where it is."""
    release = os.uname().release
    places = [at(path) for path in ("proc/config.gz", f"boot/config-{release}",
                                    f"usr/lib/modules/{release}/config",
                                    f"lib/modules/{release}/build/.config")]
    place = next(filter(os.path.isfile, places), places[1])
    with (gzip.open if place.endswith(".gz") else open)(place, "rb") as file:
        text = file.read(MOST_CONFIG).decode(errors="replace")
    return "\n".join(sorted(found[0] for found in OPTIONS.finditer(text)))


def configuration(budget: Budget) -> Section:
    """Return what of the kernel's configuration matters here."""
    made, found = Section("configuration of the kernel"), answer(config_text, budget)
    made.facts["options"] = shown(found)
    note(made, "configuration of the kernel", found)
    return made


def modules(budget: Budget) -> Section:
    """Return what is loaded of the schedulers, with their parameters."""
    made, files = Section("modules"), {}
    names = [f"{name}_iosched" for name in (*schedulers.OURS, "kyber")] + ["bfq", "mq_deadline"]
    for each in answers(module_files, names, budget):
        if each.value or each.why:
            files |= {path[len(at("sys/module/")):]: path for path in each.value or ()}
            made.facts[each.item] = f"({each.why})" if each.why else "loaded"
    read_all(made, files, budget)
    return made


def module_files(name: str) -> list[str]:
    """Return the files that tell of a module, [] if it is not loaded."""
    folder = at(f"sys/module/{name}")
    if not os.path.isdir(folder):
        return []
    found = [f"{folder}/{file}" for file in OF_MODULE if os.path.exists(f"{folder}/{file}")]
    return found + [f"{folder}/parameters/{file}" for file in names_in(f"{folder}/parameters")]


def dkms_lines() -> list[str]:
    """Return what DKMS's folder says of each version and kernel: added, built or installed."""
    top, lines = at(DKMS), []
    for version in names_in(top):
        folder = f"{top}/{version}"
        if os.path.islink(folder) or not os.path.isdir(folder):
            continue
        builds = [f"{release}, {machine}" for release in names_in(folder)
                  if release not in ("source", "build") and
                  not os.path.islink(f"{folder}/{release}")
                  for machine in names_in(f"{folder}/{release}")
                  if os.path.isdir(f"{folder}/{release}/{machine}/module")]
        lines += [f"{version}, {build}: "
                  f"{'installed' if is_installed(top, version, build) else 'built'}"
                  for build in builds] or [f"{version}: added, not built"]
    return lines


def is_installed(top: str, version: str, build: str) -> bool:
    """Return true if DKMS has installed a build of a version, "KERNEL, MACHINE"."""
    link = f"{top}/kernel-{build.replace(', ', '-')}"
    return os.path.islink(link) and os.readlink(link).startswith(f"{version}/")


def dkms_log(top: str) -> str:
    """Return the end of the log of a build that has failed, "" if none has."""
    for version in reversed(names_in(top)):
        log = f"{top}/{version}/build/make.log"
        if os.path.isfile(log):
            with open(log, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_TEXT))
                lines = file.read(MOST_TEXT).decode(errors="replace").splitlines()
            return "\n".join(lines[-LOG_LINES:])
    return ""


def dkms(budget: Budget) -> Section:
    """Return what DKMS has done with the modules."""
    made, found = Section("DKMS"), answer(dkms_lines, budget)
    note(made, "DKMS", found)
    made.facts["ssd-iosched"] = ("\n".join(found.value) if found.value else
                                 f"({found.why or 'it does not have it'})")
    log = answer(lambda: dkms_log(at(DKMS)), budget)
    if log.value:
        made.facts["log of the build that failed"] = str(log.value)
    note(made, "log of DKMS", log)
    return made


def programs(budget: Budget) -> Section:
    """Return what programs say. If one does not answer, the drive that they are on may hang: the
    rest is not run."""
    made, commands = Section("programs"), list(PROGRAMS.values())
    for name, each in zip(PROGRAMS, answers(output_of, commands, budget, PROGRAM_S, 1),
                          strict=True):
        made.facts[name] = shown(each)
    silent = [name for name in PROGRAMS if made.facts[name].startswith("(no answer")]
    made.lacking += [f"programs: {name} gave {made.facts[name][1:-1]}" for name in silent]
    return made


def sections(budget: Budget) -> list[Section]:
    """Return all of them. What is on a drive, which may hang, is asked last."""
    return [each(budget) for each in (kernel, modules, versions, configuration, dkms, programs)]
