#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# ssd-probe restores a drive's settings after signals and errors, goes on after an interruption,
# reports a drive that fails or disappears in one line, and writes no more than agreed
# timeout: 600
"""The host starts a simulated guest, which runs this program again: numpy takes a second of a
processor there, and ten in an emulated one."""

import contextlib
import html.parser
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/common")]

from checks import check, modprobe, run, wait_for  # noqa: E402  (in a folder added above)
from iosched import Disk, ours, remove_all  # noqa: E402
from probing import (  # noqa: E402
    COMMAND, FAKE, STATES, probe, queue_settings, skip_without_parts, start, states, wait_for_line)
from ssd import Device, NullBlk  # noqa: E402
from ssd_common import probe_report, settings  # noqa: E402
from ssd_common.drive import in_flight, read  # noqa: E402
from terminal import Terminal  # noqa: E402

JSON, HTML = pathlib.Path("/tmp/report.json"), pathlib.Path("/tmp/report.html")
PROGRAM = "build/tools/ssd-probe-io"
PACKAGES = ("python3-jinja2", "python3-jsonschema", "python3-matplotlib", "python3-numpy",
            "python3-scipy", "liburing2")
# More than the command needs until it is interrupted.
LONG = {"LONG_S": "600"}
# A procedure may run so often: twice if other work on the machine disturbed it.
RUNS = (1, 2)
MB = 1 << 20


def unusual(dev):
    """Give a drive settings that are not the default ones; return all."""
    dev.scheduler("bfq")
    for name, value in {"iosched/slice_idle_us": 33, "nomerges": 1, "max_sectors_kb": 256,
                        "add_random": 1, "nr_requests": 77, "wbt_lat_usec": 5000}.items():
        dev.queue(name, value)
    return queue_settings(dev.name)


def restored(dev, before, what):
    """Check that a drive's settings are as they were."""
    now = queue_settings(dev.name)
    differ = {name: (before.get(name), now.get(name)) for name in before | now
              if before.get(name) != now.get(name)}
    check(not differ, f"{what}: settings are restored {differ or ''}")


def changed(dev):
    """Check that the settings are now those to measure with."""
    now = queue_settings(dev.name)
    check(now["scheduler"].startswith("[none]") and now["nomerges"] == "2" and
          now["wbt_lat_usec"] == "0", "the drive has settings to measure with")


def idle(dev):
    """Wait until the program that makes the I/O has ended, and its last I/O."""
    def ended():
        names = {read(path) for path in pathlib.Path("/proc").glob("[0-9]*/comm")}
        return "ssd-probe-io" not in names and not any(
            in_flight(pathlib.Path("/sys/block", dev.name)).values())
    wait_for(ended, "the end of the I/O")


def interrupted(dev, number):
    """End a run by a signal in its second procedure, then go on."""
    before = unusual(dev)
    what = signal.Signals(number).name
    options = [f"--json={JSON}", dev.path]
    with start(*options, **LONG) as running:
        wait_for_line(running, "Reads for some time")
        changed(dev)
        running.send_signal(number)
        errors = running.stderr.read()
        status = running.wait()
    killed = number == signal.SIGKILL
    check(status == (-number if killed else 128 + number), f"{what}: status {status}")
    if not killed:
        check(errors.count("\n") <= 2 and "run it again to go on" in errors, errors)
        restored(dev, before, what)
    check(len(states()) == 1 and not JSON.exists(), f"{what}: the state is kept: {states()}")
    idle(dev)
    reads = dev.stats()["read_count"]
    status, out, errors = probe(*options)
    reads = dev.stats()["read_count"] - reads
    check(status == 0 and "A few reads" not in errors and "Reads for some time" in errors,
          f"{what}: the first procedure is not repeated")
    made = json.loads(JSON.read_text())
    # The estimate reads 128 times, the second procedure 8 times.
    check(reads in [128 + 8 * n for n in RUNS], f"{what}: {reads} reads")
    found = probe_report.values(made)
    check(found == {"alpha": 100, "beta": 200, "gamma": None, "delta": None},
          f"{what}: all findings are there: {found}")
    check(not states(), f"{what}: the state is removed")
    restored(dev, before, f"after {what}")
    JSON.unlink()


def killed(dev):
    """After SIGKILL, ssdctl revert restores the settings."""
    before = unusual(dev)
    with start(f"--json={JSON}", dev.path, **LONG) as running:
        wait_for_line(running, "Reads for some time")
        running.kill()
        running.communicate()
    changed(dev)
    file = pathlib.Path("/run/ssd-iosched", f"{dev.name}.json")
    check(file.stat().st_mode & 0o777 == 0o600, "its settings are in a file")
    done = subprocess.run([PROJECT / "tools/ssdctl/ssdctl", "revert", dev.name],
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0 and "was killed: it has bfq again" in done.stdout,
          f"revert: {done.stdout}{done.stderr}")
    restored(dev, before, "reverted")
    check(not file.exists(), "the file is removed")
    states()[0].unlink()


def begun_anew(dev):
    """--fresh ignores the state; other options have a state of their own."""
    with start(dev.path, **LONG) as running:
        wait_for_line(running, "Reads for some time")
        running.send_signal(signal.SIGINT)
        running.communicate()
    for options in (["--seed", "2"], ["--fresh"]):
        status, _, errors = probe(*options, f"--json={JSON}", dev.path)
        check(status == 0 and "A few reads:" in errors, f"{options}: the first one is repeated")
    check(not states(), "no state is left")


def damaged_state(dev):
    """A state that cannot be read is none."""
    with start(dev.path, **LONG) as running:
        wait_for_line(running, "Reads for some time")
        running.send_signal(signal.SIGTERM)
        running.communicate()
    states()[0].write_text("{")
    status, _, errors = probe(f"--json={JSON}", dev.path)
    check(status == 0 and "A few reads:" in errors, "a damaged state is ignored")


def one_line(errors, part):
    """Check that the last line of the errors has @part and that there is no traceback."""
    check("Traceback" not in errors and part in errors.strip().splitlines()[-1], f"says {part}")


def disappears():
    """A drive is removed meanwhile."""
    dev = Device("small", capacity_mb=64)
    unusual(dev)
    JSON.unlink()
    with start(f"--json={JSON}", dev.path, **LONG) as running:
        wait_for_line(running, "Reads for some time")
        dev.remove()
        errors = running.stderr.read()
        status = running.wait()
    check(status == 1 and errors.count("\n") == 1 and not JSON.exists(), f"{status}: {errors}")
    one_line(errors, f"{dev.path} has disappeared")
    kept = states()
    check(len(kept) == 1, "the state is kept")
    # A drive without a serial number that is added is another one.
    with Device("small", capacity_mb=64) as dev:
        status, _, errors = probe(f"--json={JSON}", dev.path)
        check(status == 0 and "goes on" not in errors, "another drive does not go on")
    check(states() == kept, "nor is its state lost")
    kept[0].unlink()


def fails():
    """Sectors of a drive become bad."""
    dev = NullBlk("bad", size=64, memory_backed=1, queue_mode=2)
    before = queue_settings(dev.name)
    with start(f"--json={JSON}", dev.path, **LONG) as running:
        wait_for_line(running, "Reads for some time")
        (dev.folder / "badblocks").write_text(f"+{8 * MB >> 9}-{(64 * MB >> 9) - 1}")
        errors = running.stderr.read()
        status = running.wait()
    check(status == 1 and errors.count("\n") == 1, f"{status}: {errors}")
    one_line(errors, f"{dev.path}: the read of ")
    restored(dev, before, "a bad drive")
    check(len(states()) == 1, "the state is kept")
    status, out, errors = probe("--fresh", f"--json={JSON}", dev.path)
    check(status == 1 and not out, f"status {status}")
    one_line(errors, "Input/output error")
    dev.remove()


def defect(dev):
    """A procedure has a defect."""
    before = unusual(dev)
    status, _, errors = probe(f"--json={JSON}", dev.path, BROKEN="1")
    found = json.loads(JSON.read_text())["findings"]
    check(status == 1 and "Traceback" not in errors, f"status {status}")
    check(found["alpha"]["value"] == 100 and found["gamma"]["value"] is None and
          "ValueError: a defect" in found["gamma"]["why"], found["gamma"]["why"])
    restored(dev, before, "a defect")
    status, _, errors = probe(f"--json={JSON}", dev.path)
    check(status == 0 and "A few reads" not in errors, "only the broken procedure is repeated")


def writes(dev):
    """The drive is written once in advance, and not more than agreed."""
    before = unusual(dev)
    dev.reset()
    status, out, _ = probe("--destroy", "--range", "16M", f"--json={JSON}", dev.path,
                           typed=f"{dev.name}\n")
    stats, made = dev.stats(), json.loads(JSON.read_text())
    check(status == 0 and stats["host_write_bytes"] in [16 * MB + 50 * 4096 * n for n in RUNS],
          f"{stats['host_write_bytes']} bytes were written")
    check(made["findings"]["mapping"]["value"] == "page" and not made["left_out"] and
          "Left out" not in out, "the writing procedure has run")
    restored(dev, before, "--destroy")
    status, out, _ = probe("--destroy", "--range", "16M", "--max-write", "17M", f"--json={JSON}",
                           f"/dev/../dev/{dev.name}", typed=f"{dev.name}\n", WRITES="300")
    found = json.loads(JSON.read_text())["findings"]["mapping"]
    check(status == 0 and found["value"] is None and "(--max-write)" in found["why"],
          found["why"])
    status, _, errors = probe("--destroy", "--max-write", "1M", dev.path)
    check(status == 1 and "--range" in errors, "a bound below the range is refused")


def interrupt_in_advance(dev, *options):
    """Interrupt a run while it writes in advance."""
    dev.reset()
    with start(*options) as running:
        running.stdin.write(f"{dev.name}\n")
        running.stdin.flush()
        wait_for_line(running, "in ascending order   0%")
        wait_for(lambda: dev.stats()["host_write_bytes"] > 24 * MB, "some writes", step=0.01)
        running.send_signal(signal.SIGINT)
        running.communicate()
        check(running.returncode == 130, f"status {running.returncode}")


def interrupted_in_advance(dev):
    """A run that was interrupted while it wrote in advance goes on there; or begins anew, if what
    it wrote was discarded."""
    options = ["--destroy", "--only", "mapping", f"--json={JSON}", dev.path]
    interrupt_in_advance(dev, *options)
    status, _, errors = probe(*options, typed=f"{dev.name}\n")
    check("goes on" in errors, "it goes on")
    written = dev.stats()["host_write_bytes"]
    check(status == 0 and 64 * MB < written <= 64 * MB + 17 * MB, f"{written} bytes in all")
    interrupt_in_advance(dev, *options)
    run("blkdiscard", "--force", dev.path)
    dev.reset()
    status, _, errors = probe(*options, typed=f"{dev.name}\n")
    check("begins anew" in errors and "goes on" not in errors, "it begins anew")
    written = dev.stats()["host_write_bytes"]
    check(status == 0 and written > 64 * MB, f"{written} bytes after the discard")


def unsaved(dev):
    """A state that cannot be saved does not end the run."""
    run("mount", "-t", "tmpfs", "-o", "ro", "none", STATES)
    status, _, errors = probe(f"--json={JSON}", dev.path)
    run("umount", STATES)
    check(status == 0 and errors.count("cannot be written: Read-only file system") == 1 and
          JSON.exists(), f"a read-only file system: status {status}")


def hung_up(dev):
    """The terminal goes: the settings are restored and the state is kept nevertheless."""
    before = unusual(dev)
    os.environ.update(LONG)
    terminal = Terminal([FAKE, dev.path])
    for name in LONG:
        del os.environ[name]
    terminal.until(rb"Reads for some time", "the second procedure")
    changed(dev)
    terminal.hang_up()
    status = terminal.child.wait(60)
    check(status == 128 + signal.SIGHUP, f"without a terminal: status {status}")
    restored(dev, before, "without a terminal")
    check(len(states()) == 1, "the state is kept")
    states()[0].unlink()


def closed(dev):
    """The caller has closed a stream."""
    done = subprocess.run(["sh", "-c", f"{FAKE} --destroy {dev.path} <&-"], capture_output=True,
                          text=True, check=False)
    check(done.returncode == 1 and "something else was typed" in done.stderr, done.stderr)
    done = subprocess.run(["sh", "-c", f"{FAKE} --json={JSON} {dev.path} 2>&-"], check=False,
                          stdout=subprocess.PIPE)
    check(done.returncode == 0 and b"[1/" not in done.stdout, f"without stderr: {done}")


class Links(html.parser.HTMLParser):
    """Collects what a page loads."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name in ("src", "href")]


def reports(dev):
    """The files of a report, and the same from JSON alone."""
    folder = pathlib.Path("/tmp/reports")
    status, out, errors = probe("--output", folder, dev.path)
    names = sorted(path.name for path in folder.iterdir())
    check(status == 0 and names == [f"ssd-probe-{dev.name}.{kind}" for kind in ("html", "json")],
          f"{names}")
    made = json.loads((folder / names[1]).read_text())
    check(made["schema"] == 1 and made["kernel"] == os.uname().release and
          made["drive"]["bytes"] == 64 * MB and made["options"]["seed"] == 1,
          f"the report says what was measured: {made['drive']}")
    curve = made["findings"]["alpha"]["curve"]
    check(len(curve["lines"]["time"][1]) == 100, "it has the curve")
    check(made["left_out"][0]["procedure"] == "writes" and "Left out: writes" in out,
          "it says what was left out")
    page = (folder / names[0]).read_text()
    links = Links()
    links.feed(page)
    check(all(link.startswith("data:") for link in links.found), "the page needs no other file")
    drawn = "python3-matplotlib" not in errors
    check(len(links.found) == drawn and ("matplotlib is missing" in page) != drawn,
          f"it has {len(links.found)} figures")
    status, again, _ = probe("--from", folder / names[1], "--html", HTML)
    check(status == 0 and again.split("\nWritten")[0] == out.split("\nWritten")[0] and
          HTML.read_text() == page, "the report from JSON is the same")
    failing_output(folder / names[1])


def failing_output(path):
    """ssd-probe reports a full output in one line, and a closed pipe not at all."""
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([COMMAND, "--from", path], stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False)
    check(done.returncode == 1 and done.stderr == "ssd-probe: the output: No space left on "
          "device\n", f"a full output: {done.stderr.strip()}")
    done = subprocess.run(["sh", "-c", f"{COMMAND} --from {path} | true"], capture_output=True,
                          text=True, check=False)
    check(not done.stderr, f"no error for a closed pipe: {done.stderr.strip()}")
    strict = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    done = subprocess.run([COMMAND, "--from", path, "--html", b"/tmp/r\xe9s.html"], env=strict,
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0 and "Written: /tmp/r\\udce9s.html" in done.stdout, done.stderr)


def invalid():
    """Invalid options are reported in one line."""
    for options in ([], ["--from", JSON, "/dev/x"], ["--range", "0", "/dev/x"], ["--bla"],
                    ["--max-write", "1G", "/dev/x"], ["--seed", "-1", "/dev/x"],
                    ["--json=a", "--output", "b", "/dev/x"]):
        status, _, errors = probe(*options)
        check(status == 2 and errors.count("\n") == 1, f"{options}: {errors.strip()}")
    bad = pathlib.Path("/tmp/bad.json")
    for path, text in (("/dev/null", ""), ("/nothing", ""),
                       (bad, '{"schema": 1, "findings": {"x": {"value": [4]}}}'),
                       (bad, '{"schema": 1, "findings": {"x": {"value": 4}}}')):
        if text:
            bad.write_text(text)
        status, _, errors = probe("--from", path)
        check(status == 1 and errors.count("\n") == 1, f"{path} {text}: {errors.strip()}")


def refused_options(dev):
    """Options that do not go with the drive are refused in one line."""
    for options, part in ((["--only", "epsilon"], "nothing is named epsilon"),
                          (["--only", "mapping"], "they need --destroy"),
                          (["--json=/nothing/x"], "not a folder"),
                          (["--html", "/tmp"], "/tmp is a folder: name a file"),
                          (["--range", "64K"], "too small")):
        status, _, errors = probe(*options, dev.path)
        check(status == 1, f"{options}: status {status}")
        one_line(errors, part)


@contextlib.contextmanager
def busy(dev):
    """Read the drive meanwhile."""
    read = f"dd if={dev.path} of=/dev/null bs=4k iflag=direct status=none"
    with subprocess.Popen(["sh", "-c", f"while :; do {read}; done"],
                          start_new_session=True) as reader:
        before = dev.stats()["read_count"]
        wait_for(lambda: dev.stats()["read_count"] > before + 100, "reads")
        try:
            yield
        finally:
            os.killpg(reader.pid, signal.SIGKILL)


def load(dev):
    """A busy drive is told from a quiet one, and measured twice."""
    _, out, _ = probe("--load", dev.path)
    check("other programs" not in out, f"quiet: {out.strip()}")
    with busy(dev):
        status, out, _ = probe("--load", dev.path)
        check(status == 1 and "other programs moved" in out, f"busy: {out.strip()}")
        status, out, errors = probe(f"--json={JSON}", "--only", "alpha", dev.path)
    record = json.loads(JSON.read_text())["procedures"]["short"]
    check(status == 0 and "do not trust this run" in errors and
          "short was disturbed: other programs moved" in " ".join(out.split()) and
          record["disturbed"], f"a disturbed run says so: {record}")


def missing(dev):
    """What is missing is named in one line."""
    # Without site-packages there is no numpy.
    done = subprocess.run(["/usr/bin/python3", "-S", COMMAND, dev.path], capture_output=True,
                          text=True, check=False)
    check(done.returncode == 1 and
          done.stderr == "ssd-probe: numpy is missing: install python3-numpy\n", done.stderr)
    without = ("import sys; sys.modules['matplotlib'] = None; "
               "from ssd_probe.command import main; sys.exit(main())")
    done = subprocess.run(["/usr/bin/python3", "-c", without, "--from", JSON, "--html", HTML],
                          capture_output=True, text=True, check=False,
                          env={**os.environ,
                               "PYTHONPATH": f"{COMMAND.parent}:{PROJECT}/tools/common"})
    check(done.returncode == 0 and done.stderr.count("\n") == 1 and
          "install python3-matplotlib" in done.stderr, done.stderr)
    copy = pathlib.Path("/tmp/copy/of/tools")
    for name in ("common", "ssd-probe"):
        shutil.copytree(PROJECT / "tools" / name, copy / name)
    status, _, errors = probe(dev.path, program=copy / "ssd-probe/ssd-probe")
    check(status == 1 and errors.count("\n") == 1 and "make tools" in errors, errors)


def tunables():
    """Each scheduler takes what is derived for it, at the least and most values of findings."""
    with Device("small", capacity_mb=64) as dev:
        for scheduler in ours():
            modprobe(f"{scheduler}-iosched")
        for values in (presets := {**known_drives(), **extremes()}).values():
            for scheduler, chosen in settings.tunables(values).items():
                disk = Disk(dev.name, scheduler)
                disk.set(**chosen)
                got = {name: disk.tunable(name).read_text() for name in chosen}
                same = all(re.search(rf"(^|\[){re.escape(str(value))}($|\]|\n)", got[name])
                           for name, value in chosen.items())
                check(same, f"{scheduler} takes {chosen}")
            dev.scheduler("none")
        check(len(presets) > 4, "on several drives")
    remove_all()


def extremes():
    """Return findings with values that no drive has."""
    names = ("region_mb", "region_depth", "read_depth", "units", "stride_kb", "channels",
             "erase_block_kb", "open_blocks", "clustered_page_kb", "clustered_block_kb",
             "read_buffer_kb", "write_buffer_kb", "interference", "read_us")
    found = {f"all {value}": {name: value for name in names} | {
        "static_allocation": True, "allocation": "wcpd"} for value in (0, 1, 3, 1e3, 1 << 20, 1e12)}
    return found | {"nothing": {}, "cannot tell": dict.fromkeys(names)}


def known_drives():
    """Return the true findings of presets."""
    return {"pass-ssd1": {"region_mb": 2048, "region_depth": None, "allocation": "concat",
                          "read_depth": 16, "read_us": 1112, "write_us": 1159,
                          "interference": 380, "mapping": "page"},
            "piq": {"units": 64, "channels": 8, "stride_kb": 4, "static_allocation": True,
                    "in_order": True, "allocation": "cw", "read_us": 125, "read_depth": 64,
                    "mapping": "page", "clustered_page_kb": 4},
            "bp-transcend": {"mapping": "block", "erase_block_kb": 1024, "open_blocks": 1,
                             "units": 4, "clustered_page_kb": 4, "read_depth": 1},
            "pai-a": {"clustered_page_kb": 16, "clustered_block_kb": 4096, "read_buffer_kb": 256,
                      "write_buffer_kb": 255, "mapping": None},
            "sata": {"static_allocation": False, "in_order": False, "mapping": "page",
                     "clustered_page_kb": 4, "early_ack": True, "region_mb": None}}


# The scheduler of a preset's paper and its settings there: Documentation/pass.md, piq.md, bp.md,
# pai.md.
ADVICE = {"pass-ssd1": ("pass", {"region_size_mb": 2048, "region_depth": 4, "depth": 16,
                                 "write_share": 100, "write_batch": 4}),
          "piq": ("piq", {"page_size_kb": 4, "channels": 8, "chips": 8, "dies": 1, "planes": 1,
                          "allocation": "cwdp", "level": "chip"}),
          "bp-transcend": ("bp", {"block_size_kb": 1024, "open_blocks": 1}),
          "pai-a": ("pai", {"clustered_page_kb": 16, "clustered_block_kb": 4096,
                            "read_buffer_kb": 256, "write_buffer_kb": 255, "split": "pasa"})}


def advice():
    """On the papers' drives the paper's scheduler is advised, with the settings that its
    document has; on a drive of today none is. Reads keep their share where writes take longer."""
    for preset, values in known_drives().items():
        fits = [name for name, (good, _) in settings.advice(values).items() if good]
        made = settings.tunables(values)
        wanted = [ADVICE[preset][0]] if preset in ADVICE else []
        check(fits == wanted, f"{preset}: {fits or 'none'}")
        for name in fits:
            check(made[name] == ADVICE[preset][1], f"{preset}: {made[name]}")
    slow = known_drives()["pass-ssd1"] | {"write_us": 3000}
    check("write_share" not in settings.tunables(slow)["pass"], "write_share of slow writes")


def start_guest():
    """Run this program in a guest, in place of this process."""
    os.chdir(PROJECT)
    skip_without_parts()
    lab = [PROJECT / "scripts/lab", "--quiet", "--simulate", "--memory=2G",
           *(f"--package={name}" for name in PACKAGES), f"--file={PROGRAM}={PROGRAM}"]
    os.execv(lab[0], [*map(str, lab), "--", "python3", "tests/host/probe-command.py"])


def main():
    if os.environ.get("LAB_SIMULATED") != "1":
        start_guest()
    check(FAKE.exists(), "procedures of a test")
    invalid()
    advice()
    with Device("small", capacity_mb=64, memory_backed=1) as dev:
        refused_options(dev)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGKILL):
            interrupted(dev, number)
        killed(dev)
        begun_anew(dev)
        damaged_state(dev)
        defect(dev)
        writes(dev)
        interrupted_in_advance(dev)
        reports(dev)
        load(dev)
        missing(dev)
        unsaved(dev)
        hung_up(dev)
        closed(dev)
    disappears()
    fails()
    tunables()


if __name__ == "__main__":
    main()
