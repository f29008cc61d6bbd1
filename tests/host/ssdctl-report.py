#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# ssdctl report does not wait for what hangs, opens no drive, and writes only a new file; the result
# of a drive fits its schema and has no name
# quick: host

import errno
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import time
import types

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/common")]

from host import need  # noqa: E402  (in a folder added above)

need("jsonschema")

from checks import check, wait_for  # noqa: E402  (in a folder added above)
from reported import (  # noqa: E402
    HOST, PERSON, SECRETS, SERIAL, TOOL, WWN, called, fake_root, gone)
from ssd_common import checked  # noqa: E402
from ssd_ctl import CtlError, report_command, udev  # noqa: E402
from ssd_ctl.report import (  # noqa: E402
    Section, bounded, contributed, facts, kernel_log, machine, of_drive, tasks)
from ssd_ctl.report.bounded import Budget, answer, answers  # noqa: E402

# Seconds for which what hangs does so, in which all ends that does not wait for it, and in which
# what does not hang answers: a busy machine has time for them.
HANGS, SOON, ANSWER_S = 60, 50, 3


def hang(_):
    """Sleep uninterruptibly: the child that is started here opens a pipe that nothing writes to,
    and its parent waits until it has."""
    with tempfile.TemporaryDirectory() as folder:
        pipe = os.path.join(folder, "pipe")
        os.mkfifo(pipe)
        os.posix_spawn("/bin/true", ["true"], {},
                       file_actions=[(os.POSIX_SPAWN_OPEN, 0, pipe, os.O_RDONLY, 0)])


def silent():
    """What does not answer is given up, and the rest is asked."""
    began = time.monotonic()
    found = list(answers(lambda item: hang(0) if item in (1, 3) else item * 2, range(5), Budget(),
                         ANSWER_S))
    check([each.value for each in found] == [0, None, 4, None, 8], "the others have answered")
    check(all(f"no answer within {ANSWER_S}.0 s" in found[number].why for number in (1, 3)),
          found[1].why)
    found = list(answers(hang, range(50), Budget(), 0.2))
    check("4 before it did not answer" in found[-1].why, f"the rest is not asked: {found[-1].why}")
    found = list(answers(hang, range(9), Budget(0.3), 9))
    check("the report's time was over" in found[-1].why, found[-1].why)
    found = list(answers(lambda _: "x" * 99, range(9), Budget(9, 150)))
    check("the report was full" in found[-1].why and found[1].value, found[-1].why)
    check(time.monotonic() - began < SOON, "all of it in time")
    for call, because in ((lambda: 1 / 0, "not understood (ZeroDivisionError)"),
                          (lambda: os.open("/nothing", 0), "No such file"),
                          (lambda: os._exit(1), "no answer")):
        check(because in answer(call, Budget()).why, f"an error is one: {because}")


def left_behind(folder):
    """A child that nothing ends keeps neither the program nor its reader waiting."""
    script = folder / "left.py"
    script.write_text(f"""import os, sys, time
sys.path[:0] = {sys.path[:3]!r}
from ssd_ctl.report import bounded
os.killpg = lambda *_: None
print(bounded.answer(lambda: time.sleep({HANGS}), bounded.Budget(), 0.3).why)
""")
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-B", script], capture_output=True, text=True,
                          check=False)
    check("no answer" in done.stdout and time.monotonic() - began < SOON, done.stdout.strip())


def files(folder):
    """Only regular files are opened, and long ones are cut; so are programs that do not end."""
    os.mkfifo(folder / "pipe")
    for path in (folder / "pipe", "/dev/null", folder):
        check("it is no file" in answer(lambda path=path: bounded.text_of(path), Budget()).why,
              f"{path} is not opened")
    (folder / "long").write_bytes(b"x" * (bounded.MOST_TEXT + 5))
    for text in (bounded.text_of(folder / "long"), bounded.output_of(["yes"])):
        check(len(text) == bounded.MOST_TEXT + len(bounded.CUT) or text.endswith(
            "(status -9)"), "it is cut")
    began = time.monotonic()
    why = answer(lambda: bounded.output_of(["sleep", str(HANGS)]), Budget(), 0.3).why
    check("no answer" in why and time.monotonic() - began < SOON, f"sleep: {why}")


def blocked():
    """A task in uninterruptible sleep is found, with what it waits in."""
    machine.ROOT = "/"
    child = bounded.Child(hang, [0])
    try:
        def found():
            return [name for name in tasks.section(Budget()).facts if str(child.number) in name]
        wait_for(found, "the blocked task", 20)
        text = tasks.section(Budget()).facts[found()[0]]
        check(re.search("fork|clone", text) or os.geteuid(), f"it waits in {text.splitlines()[:1]}")
    finally:
        child.end()


def many_missing(folder):
    """What is missing for one reason is named in one line."""
    (folder / "there").write_text("text")
    for number in range(6):
        (folder / f"d{number}").mkdir()
    section = Section("title")
    facts.read_all(section, {name: str(folder / name) for name in (
        "there", "absent", *(f"d{number}" for number in range(6)))}, Budget())
    check(section.facts["there"] == "text" and "absent" not in section.facts, "what is there")
    check(section.lacking == ["d0, d1, d2, d3 and 2 more: it is no file"], f"{section.lacking}")


def hanging_root():
    """If nothing on the drive of the system answers, the rest of the report is whole."""
    def asleep(*_):
        time.sleep(HANGS)
    hanging = [(machine, "output_of"), (machine, "config_text"), (machine, "dkms_lines"),
               (machine, "dkms_log"), (of_drive, "setters"), (of_drive, "kept")]
    kept = [getattr(module, name) for module, name in hanging]
    limits = report_command.Budget, report_command.MACHINE_S
    for module, name in hanging:
        setattr(module, name, asleep)
    report_command.Budget, report_command.MACHINE_S = (lambda seconds=16: Budget(seconds)), 8
    began = time.monotonic()
    made = report_command.gathered(["sda"], True)
    took = time.monotonic() - began
    report_command.Budget, report_command.MACHINE_S = limits
    told = {section["title"]: section["facts"] for section in made["sections"]}
    check(told["drive sda"].get("queue/scheduler") == "none [bp]" and
          told["drive sda"]["stat"] == "1 2 3 4", f"the drive: {list(told['drive sda'])[:4]}")
    check("command line" in told["kernel"] and told["modules"]["bp_iosched"] == "loaded",
          "the kernel and the modules")
    check(not any(value.startswith("(") for value in (
        *told["kernel's log"].values(), *told["blocked tasks"])), "the log and blocked tasks")
    check("configuration of the kernel: no answer" in "\n".join(made["lacking"]) and took < SOON,
          f"the rest is missing, after {took:.1f} s")
    limit, machine.PROGRAM_S = machine.PROGRAM_S, 0.2
    said, machine.PROGRAM_S = machine.programs(Budget(9)), limit
    check(said.facts["udev"].startswith("(no answer") and said.lacking and
          said.facts["fio"] == "(1 before it did not answer)", f"one program is run: {said.facts}")
    for (module, name), call in zip(hanging, kept, strict=True):
        setattr(module, name, call)


def log():
    """Of the kernel's log the lines about the drive, the modules, and complaints are kept."""
    lines = [kernel_log.line_of(f"6,{number},{number}000000,-;{text}\n SUBSYSTEM=x\n")
             for number, text in enumerate((
                 "sda: ready", "sdab: other", "EXT4-fs (sda1): mounted", "wlan0: up", "sda2x: no",
                 "io scheduler bp registered", "INFO: task fio:7 blocked for more than 120 s.",
                 "      Not tainted", "Call Trace:", " schedule+0x1/0x2", " </TASK>", "wlan0: down",
                 "Mitigation: WARNING: see"))]
    found = [line.split("] ", 1)[1] for line in kernel_log.about(lines, ["sda"])]
    check(found == ["sda: ready", "EXT4-fs (sda1): mounted", "io scheduler bp registered",
                    "INFO: task fio:7 blocked for more than 120 s.", "      Not tainted",
                    "Call Trace:", " schedule+0x1/0x2", " </TASK>"], f"{found}")
    check(len(kernel_log.about(["] BUG: x"] * 5000, [])) == kernel_log.LINES, "not all of them")
    check(kernel_log.about(["sd: x"], []) == [], "without a drive none")


def no_drive_opened(event, words):
    """Raise an error where a device is opened but for what is no drive."""
    if event == "open" and str(words[0]).startswith("/dev/") and words[0] not in (
            "/dev/null", "/dev/kmsg", "/dev/urandom"):
        raise AssertionError(words[0])


def refused(*_):
    """Refuse a call, as vfat does."""
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def whole(folder):
    """The file is new, private, whole, and without names; with them if asked."""
    hostile = [f"[    1.000000] sda: {word} \x1b[2J" for word in SECRETS]
    kernel_log.records = lambda: hostile
    of_drive.setters = lambda disk: [f"/etc/udev/rules.d/{SERIAL}.rules:1 sets scheduler to none"]
    of_drive.kept = lambda disk: {f"rule 70-{SERIAL}.rules": f'ENV{{ID_SERIAL_SHORT}}=="{SERIAL}"'}
    sys.addaudithook(no_drive_opened)
    place = folder / "reports"
    place.mkdir()
    os.chdir(place)
    name = f"ssdctl-report-sda-{report_command.date()}"
    said = called("report", "sda")
    check(f"written: {name}.txt" in said, said)
    text = (place / f"{name}.txt").read_text()
    for word in SECRETS:
        gone(lambda text: text, text, word)
    check("\x1b" not in text and "AssertionError" not in text, "no escape, no device opened")
    for wanted in ("queue/iosched/depth: 4", "SA400S37240G1234", "533BB7E5866E52F63B9ACCB",
                   "queue/scheduler: none [bp]", "Some Linux 12", "nvme_core.multipath=N",
                   "sets scheduler to none", "stat: 1 2 3 4", "mq/0/nr_tags: 32"):
        check(wanted in text, f"it has {wanted}")
    check(stat.S_IMODE((place / f"{name}.txt").stat().st_mode) == 0o600, "only its owner reads it")
    check(f"written: {name}-2.txt" in called("report", "sda"), "a second one has another name")
    check((place / f"{name}.txt").read_text() == text, "the first is as it was")
    check("exists: name a new file" in called("report", "sda", "-o", f"{name}.txt", status=1),
          "a file that is named is not overwritten")
    (place / "link").symlink_to(place / "missing")
    check("exists" in called("report", "sda", "-o", "link", status=1) and
          not (place / "missing").exists(), "no link is followed")
    kept, os.fchown = os.fchown, refused
    said = called("report", "sda", "-o", "without-owner.txt")
    os.fchown = kept
    check("== kernel" in (place / "without-owner.txt").read_text(), f"no owner is set: {said}")
    called("report", "sda", "--json", "--with-names", "-o", "names.json")
    made = checked.parse((place / "names.json").read_text(), TOOL / "ssd_ctl/schemas/report.json")
    check(made["names"] and all(word in json.dumps(made) for word in (SERIAL, HOST, PERSON)),
          "with names")
    called("report", "sda", "--json", "-o", "none.json")
    checked.parse((place / "none.json").read_text(), TOOL / "ssd_ctl/schemas/report.json")
    check(f"written: {name.replace('sda', 'all')}.txt" in called("report"), "all drives")
    for words, because in (((), "is not a block device"), (("nosuch",), "No such file"),
                           (("/dev/null",), "is not a block device"),
                           (("..",), "is not a block device"),
                           (("sda", "-o", "/nothing/x"), "No such file")):
        said = called("report", *(words or ("",)), status=1)
        check(said.count("\n") == 1 and because in said, f"one line: {said.strip()}")


ADVICE = {
    "version": "0.9", "drive": {"text": SERIAL}, "kernel": f"6.12-{HOST}",
    "workload": "/home/x.fio",
    "on": f"4 GB of a file in /home/{PERSON}", "sure": True, "recommended": "bp (probed)",
    "choice": {"scheduler": "bp", "tunables": {"depth": 4}, "queue": {"nr_requests": "128"}},
    "had": {"scheduler": "none", "tunables": {}, "queue": {}}, "confidence": 0.99, "rivals": [],
    "minutes": 9.5, "runs": 5, "rounds": 10, "changes": 0, "disturbed": [f"by {PERSON}"],
    "candidates": [{"name": "bp (probed)", "gain": 1.2, "low": 1.1, "high": None, "runs": 5,
                    "choice": {"scheduler": "bp", "tunables": {}, "queue": {}}, "left": True,
                    "verdict": "recommended", "jobs": [{"name": PERSON, "read": {
                        "mbps": 1.0, "iops": 10.0, "mean_ms": 1.0, "p99_ms": 2.0}}]}]}


def results(folder):
    """The result of a drive has what advise has found, no name, and fits its schema."""
    identity = {"vendor": "ATA", "model": "SA400S37240G1234", "firmware": "SBFK71E0",
                "driver": "sd", "bytes": 1 << 30, "rotational": False, "logical_block": 512,
                "serial": SERIAL, "wwid": WWN}
    drive = types.SimpleNamespace(
        name="sda", path="/dev/sda", sysfs=folder / "sys/block/sda", tags=32,
        queue=folder / "sys/block/sda/queue", identity=lambda: identity, driver=lambda: "sd")
    udev.properties = lambda _: {"ID_MODEL": identity["model"]}
    made = checked.parse(contributed.text(drive, ADVICE), contributed.FORM)
    for word in SECRETS:
        gone(lambda text: text, json.dumps(made), word)
    check(made["advice"]["workload"] == "own job file" and made["advice"]["disturbed"] == 1 and
          made["drive"]["model"] == identity["model"], "without a path, with the model")
    check(made["hwdb"][0] == "block:*:name:SA400S37240G1234:fwrev:*:", f"{made['hwdb']}")
    check(made["advice"]["candidates"][0]["read"]["mbps"] == 1, "with figures")
    undecided = json.loads(contributed.text(drive, ADVICE | {"sure": False, "recommended": None}))
    check(undecided["hwdb"] == [] and not undecided["advice"]["sure"], "undecided: no entry")
    check(json.loads(contributed.text(drive, {"choice": {}}))["advice"] is None, "of old none")
    for change, because in (({"model": ""}, "tells no model"), ({"bytes": 0}, "its schema"),
                            ({"model": "x\u202ey"}, "its schema")):
        former = dict(identity)
        identity.update(change)
        try:
            contributed.text(drive, None)
            check(False, f"{because} is not refused")
        except CtlError as error:
            check(because in str(error), str(error))
        identity.update(former)
    check("--contribute needs a drive" in called("report", "--contribute", "x", status=2),
          "it needs a drive")


def main():
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        silent()
        left_behind(folder)
        files(folder)
        many_missing(folder)
        blocked()
        fake_root(folder)
        hanging_root()
        log()
        results(folder)
        whole(folder)


if __name__ == "__main__":
    main()
