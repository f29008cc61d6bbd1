# SPDX-License-Identifier: GPL-2.0
"""Random job files, of all options that this fio has, with values that make sense and values that
run programs, open other paths and are no values at all."""

import random
import re
import subprocess

# What no job may touch, run or reach: a drive, a folder with a program in it, and a port.
DRIVE, FOLDER, PORT = "/dev/loop7", "/tmp/canary", 9559
PROGRAM = f"{FOLDER}/program"
NAMES = ("a", "b", "global", "global", "globalx", "a b", "[", "x;y", "g\tb", "\x1b[31m", "\xe9", "")
ENDS = ("", "", "", "", "", " ; comment", "#\xe9\xff", "\t", "\r", " \\", "\0", "\x0c")
EQUALS = ("=", "=", "=", "=", "=", " = ", "\t=\t", "==", " ", "\t", "")
ENGINES = ("libaio", "psync", "sync", "io_uring", "pvsync2", "mmap", "posixaio")
SENSIBLE = ("0", "1", "2", "4k", "1m", "50%", "10ms", "random", "none", "4k/50:8k/50", "1:2:3",
            "4k-8k", "zipf:1.2", "", "bind:0", "wait_before,write:8", "sync", "1.5", "0x1f")
EVIL = (DRIVE, FOLDER, PROGRAM, f"{FOLDER}/new", f"mmapshared:{DRIVE}", f"mmap:{FOLDER}/mapped",
        f"external:{FOLDER}/engine.so", f"exec:{PROGRAM}", f"'{PROGRAM}'", f"`{PROGRAM}`",
        f"$({PROGRAM})", f"1;{PROGRAM}", f"1|{PROGRAM}", f"$ncpus*`{PROGRAM}`", "${EVIL}",
        f"${{HOME}}{FOLDER}", "$ncpus", "$pagesize", "$mb_memory", "${", "}", "-1", "-",
        "9" * 30, "0x" + "f" * 40, "1e99", "A" * 5000, "%s%n%x", "\xc2\xa0", "\xff", "(4k*2)",
        "../../../etc/passwd", "/proc/self/mem", "/proc/sys/kernel/core_pattern", "/dev/mem",
        f"localhost,{PORT},tcp", f"/dev/measured:{DRIVE}", "/logs/../dev/measured", "tiobench")
# Options and values of which each has done something once.
CRAFTED = (
    f"include\t{FOLDER}/common.fio", f"include={FOLDER}/common.fio", f"include {FOLDER}/common.fio",
    f"includex{FOLDER}/common.fio", f"mem=mmapshared:{DRIVE}", f"mem=mmapshared:{FOLDER}/mapped",
    f"iomem=mmap:{DRIVE}", f"exec_prerun={PROGRAM}", f"exec_postrun={PROGRAM}",
    f"write_iolog={FOLDER}/iolog", f"write_lat_log={FOLDER}/log", f"filename={DRIVE}",
    f"filename=/dev/measured:{DRIVE}", f"directory={FOLDER}", f"opendir={FOLDER}",
    f"ioengine=external:{FOLDER}/engine.so", f"ioengine=exec\nprogram={PROGRAM}",
    f"ioengine=net\nhostname=127.0.0.1\nport={PORT}\nprotocol=tcp\nrw=write",
    f"ioengine=filecreate\nfilename={FOLDER}/made\nfilesize=4k",
    f"ioengine=filedelete\nfilename={FOLDER}/precious\nfilesize=4k",
    "cgroup=evil\ncgroup_weight=100", "profile=tiobench", "ioscheduler=none", "uid=0\ngid=0",
    f"replay_redirect={DRIVE}", f"read_iolog={FOLDER}/replay",
    f"verify_pattern='{FOLDER}/precious'", f"buffer_pattern='{FOLDER}/precious'",
    f"lockfile=exclusive\nfilename={FOLDER}/precious",
    f"unlink=1\nfilename={FOLDER}/precious", f"merge_blktrace_file={FOLDER}/merged",
    f"bs=$ncpus*`{PROGRAM}`", f"ioengine=sg\nfilename={DRIVE}", "steadystate=iops:50%")


# Options that fio does not list.
HIDDEN = ["softrandommap", "iomem_align", "bs_is_seq_rand"]


def listed(text: str) -> list[str]:
    """Return the names in a list of options."""
    return re.findall(r"^ *([a-z][\w-]*) *: ", text, re.MULTILINE)


def options() -> list[str]:
    """Return the names of the options that fio has, without those of engines."""
    return listed(said("--cmdhelp=all")) + HIDDEN


def engines() -> list[str]:
    """Return the names of all engines that fio has."""
    return [line.strip() for line in said("--enghelp").splitlines()[1:]]


def said(word: str) -> str:
    """Return what fio says of an option."""
    return subprocess.run(["fio", word], capture_output=True, text=True, check=False).stdout


class Jobs:
    """Random job files. @seed: of them."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.engines = engines()
        self.options = options() + [name for engine in self.engines
                                    for name in listed(said(f"--enghelp={engine}"))]

    def one_of(self, values):
        """Return one of some values."""
        return self.random.choice(values)

    def likely(self, probability: float) -> bool:
        """Return true with a probability."""
        return self.random.random() < probability

    def text(self) -> str:
        """Return a job file, of which one in three has nothing evil by intent."""
        evil = 0.3 if self.likely(0.66) else 0.0
        sections = [self.section(evil) for _ in range(self.random.randint(1, 4))]
        text = "\n".join(sections) + "\n"
        return text if not self.likely(evil / 10) else text[self.random.randrange(len(text)):]

    def section(self, evil: float) -> str:
        """Return a section. @evil: how likely a line is evil."""
        name = self.one_of(NAMES if evil else NAMES[:4])
        lines = [f"[{name}]", f"ioengine={self.one_of(ENGINES)}",
                 f"rw={self.one_of(('read', 'write', 'randread', 'randwrite', 'randrw'))}"]
        lines += [self.line(evil) for _ in range(self.random.randint(0, 6))]
        return "\n".join(lines)

    def line(self, evil: float) -> str:
        """Return a line with an option."""
        if not self.likely(evil):
            return self.one_of(USUAL)
        if self.likely(0.3):
            return self.one_of(CRAFTED)
        name = self.one_of(self.options)
        if self.likely(0.1):
            name = self.one_of((name.upper(), f"\t {name}", name[:-1], f"{name}\t"))
        value = self.one_of((self.one_of(EVIL), self.one_of(SENSIBLE), self.one_of(self.engines)))
        return f"{name}{self.one_of(EQUALS)}{value}{self.one_of(ENDS)}"


USUAL = (
    "bs=4k", "bs=4k,8k", "bssplit=4k/60:16k/25:64k/15", "bsrange=4k-16k", "iodepth=4", "direct=1",
    "direct=0", "numjobs=2", "thread", "size=50%", "offset=25%", "size=1g", "rate=1m",
    "rate_iops=100", "thinktime=5ms", "fsync=16", "fdatasync=1", "norandommap=1", "sync=dsync",
    "random_distribution=zipf:1.2", "percentage_random=50", "rwmixread=70", "mem=mmapshared",
    "buffer_pattern=0xdeadbeef", "prio=4", "nice=3", "numjobs=$ncpus", "bs=$pagesize",
    "runtime=1", "time_based", "write_lat_log=x", "latency_target=0", "steadystate=iops:50%",
    "verify=crc32c", "filename=/home/file", "description=a test", "group_reporting",
    "stonewall=0", "stonewall", "wait_for=a", "rw=randtrim", "bs=$pagesize*2", "blocksize=8k",
    "readwrite=randrw", "; a comment", "# weight=2", "invalidate=1")
