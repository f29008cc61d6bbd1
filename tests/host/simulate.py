#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# A simulated guest gives the same figures, to the nanosecond, again; instructions take no time and
# idle time is skipped; the lab reports its status and every crash, and leaves nothing behind
# timeout: 2400
import os
import pathlib
import shutil
import signal
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(PROJECT / "tests/lib"))

from checks import check, wait_for  # noqa: E402  (in a folder added above)

CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
WORK = pathlib.Path(os.environ["RESULTS"]) / "simulate"
LOAD = """
    set -e
    scripts/ssdemu load small >/dev/null
    echo pass >/sys/block/ssdemu0/queue/scheduler
    fio --name=load --filename=/dev/ssdemu0 --rw=randrw --direct=1 --ioengine=libaio --bs=4k \
        --iodepth=32 --number_ios=400 --clocksource=clock_gettime --output-format=json |
        grep -E '"(total_ios|runtime|min|max|mean|stddev|[0-9.]+)" '
    cat /sys/block/ssdemu0/stat /proc/uptime /proc/interrupts
    cat /sys/kernel/debug/ssdemu/ssdemu0/stats
    head -c 32 /dev/urandom | sha256sum
    date +%s.%N
"""
COUNT = """if True:
    import time
    before = time.monotonic_ns()
    for number in range(10**7):
        pass
    print(time.monotonic_ns() - before)
    before = time.monotonic_ns()
    time.sleep(100)
    print(time.monotonic_ns() - before)
"""
BUSY = "while :; do :; done"
OUT_OF_MEMORY = """
    echo 1 >/proc/sys/vm/panic_on_oom
    mount -t tmpfs -o size=100% memory /mnt
    cat /dev/zero >/mnt/zeros
"""


def lab(*arguments, place=WORK):
    """Start a simulated guest; return the process of the lab. @place: for temporary files."""
    return subprocess.Popen([PROJECT / "scripts/lab", "--quiet", "--simulate", *arguments],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "TMPDIR": str(place), "HOME": str(WORK),
                                 "XDG_CACHE_HOME": CACHE})


def expect(status, *arguments):
    """Run a simulated guest, which has to give this @status; return its output."""
    process = lab(*arguments)
    out, err = process.communicate()
    if process.returncode != status:
        print(err)
    what = " ".join(arguments[-1].split())
    check(process.returncode == status, f"status {process.returncode} of {what[:60]}")
    return out, err


def kernel_of(process):
    """Return the process ID of the kernel that a lab has started; None: not started."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    for child in children.split():
        if pathlib.Path(f"/proc/{child}/comm").read_text() == "linux\n":
            return int(child)
    return None


def in_group(group):
    """Return the IDs of the processes of a process @group that have not ended."""
    found = []
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state, _, its_group = place.joinpath("stat").read_text().rsplit(")")[1].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its_group) == group and state not in "ZX":
            found.append(place.name)
    return found


def check_end(status, end, command, *options):
    """Start a guest with a busy @command; check the lab's @status and that no process is left
    after @end(lab, kernel's process ID). The command sleeps first: a process that never waits is
    never preempted, and what it has printed before stays in the guest."""
    process = lab(*options, "--no-modules", "--", "sh", "-c", f"echo started; sleep 1; {command}")
    check(process.stdout.readline() == "started\n", "a guest runs")
    kernel = kernel_of(process)
    check(len(in_group(kernel)) > 1, "its processes are found")
    end(process, kernel)
    _, err = process.communicate()
    check(process.returncode == status, f"status {process.returncode}: {err[:60]}")
    wait_for(lambda: not in_group(kernel), "no process is left", seconds=10)


def check_figures():
    """Two guests at the same time, with other CPUs and folders of the host, do the same."""
    place = WORK / "in-another-folder"
    place.mkdir()
    both = [lab("--", "sh", "-c", LOAD, place=where) for where in (WORK, place)]
    (first, err), (second, _) = [process.communicate() for process in both]
    print(first, err, flush=True)
    check(first.count("\n") > 20, "a guest prints its figures")
    if first != second:
        print(second, flush=True)
    check(first == second, "another guest has the same")
    place.rmdir()
    digests = [subprocess.run([PROJECT / "scripts/lab", "-q", mode, "--digest", "--", "true"],
                              stdout=subprocess.PIPE, check=True).stdout
               for mode in ("--simulate", "--simulate", "--virtual-time")]
    check(digests[0] == digests[1] != digests[2], "its digest is its own")


def check_time():
    """Instructions take no time, waiting takes none of the host's."""
    before = os.times()
    out, _ = expect(0, "--no-modules", "--", "python3", "-c", COUNT)
    after = os.times()
    host = sum(after[2:4]) - sum(before[2:4])
    counting, sleeping = map(int, out.split())
    check(counting < 1e5, f"counting to 10^7 takes {counting} ns")
    check(100e9 <= sleeping < 100.001e9, f"100 s of sleep take {sleeping} ns")
    check(host < 60, f"and {host:.1f} s of a CPU of the host")


def check_statuses():
    """The status, output and complaints reach the host."""
    out, err = expect(42, "--no-modules", "--", "sh", "-c",
                      "seq 200000; echo heard >&2; exit 42")
    check(out == "".join(f"{n}\n" for n in range(1, 200001)) and err == "heard\n",
          "output is passed on, also a megabyte of it")
    expect(127, "--no-modules", "--", "/no/such/program")
    _, err = expect(1, "--no-modules", "--", "sh", "-c", 'echo "WARNING: a complaint" >/dev/kmsg')
    check("WARNING: a complaint" in err, "the lab prints the complaint")
    expect(255, "--no-modules", "--", "sh", "-c", "exec busybox reboot -n -f")
    _, err = expect(255, "--no-modules", "--memory", "256M", "--", "sh", "-c", OUT_OF_MEMORY)
    check("Kernel panic" in err, "the lab prints the panic")
    for options in (["--kernel", "6.1"], ["--virtual-time"], ["--cpus", "2"], ["--disk", "1M"]):
        expect(125, *options, "--", "true")


def main():
    # What builds it may leave files in the home directory, as compilers' wrappers do.
    subprocess.run([PROJECT / "scripts/sim-kernel"], check=True)
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    check_figures()
    check_time()
    check_statuses()
    check_end(255, lambda _, kernel: os.kill(kernel, signal.SIGKILL), BUSY)
    check_end(124, lambda *_: None, BUSY, "--timeout", "25")
    check_end(143, lambda lab, _: lab.terminate(), BUSY)
    left = [str(path) for path in WORK.iterdir()]
    check(not left, f"no file is left {' '.join(left)}")
    # The lab's own folder remains if the lab is killed.
    check_end(-signal.SIGKILL, lambda lab, _: lab.kill(), BUSY)
    shutil.rmtree(WORK)


if __name__ == "__main__":
    main()
