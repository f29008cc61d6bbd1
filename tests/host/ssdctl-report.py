#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# ssdctl report does not wait for what hangs, opens no drive, writes only a new file, and leaves out
# serial numbers and names, in whatever way they are written; what is no name stays; the result of a
# drive fits its schema and has no name
# quick: host

import contextlib
import errno
import io
import json
import os
import pathlib
import random
import re
import stat
import subprocess
import sys
import tempfile
import time
import types

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = PROJECT / "tools/ssdctl"
sys.path[:0] = [str(PROJECT / "tests/lib"), str(TOOL), str(PROJECT / "tools/ssd-probe")]

from host import need  # noqa: E402  (in a folder added above)

need("jsonschema")

from checks import SEED, check, wait_for  # noqa: E402  (in a folder added above)
from ssd_ctl import CtlError, command, report_command, schedulers, udev  # noqa: E402
from ssd_ctl.report import (  # noqa: E402
    Section, bounded, contributed, facts, kernel_log, machine, names, of_drive, redact, tasks)
from ssd_ctl.report.bounded import Budget, answer, answers  # noqa: E402
from ssd_probe import checked  # noqa: E402

DICE = random.Random(SEED)
# Seconds in which all ends that is bounded here.
SOON = 8
SERIAL, WWN, UUID = "S3Z8NB0K123456", "5002538e40a1b2c3", "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
HOST, PERSON, LABEL = "goldfinch", "annabel", "Holiday Pictures"
SECRETS = (SERIAL, WWN, UUID, HOST, PERSON, LABEL, "AA00112233445566", "4c530001", "Ann Abel",
           "/mnt/secret place", "0x1b2c3d4e", "vault-inner", "d0:37:45:aa:bb:cc", "7712345")


def fake_root(folder):
    """Files of a machine with drives that have serial numbers, users and mounts."""
    page80 = b"\x00\x80\x00\x0e" + SERIAL.encode()
    page83 = (b"\x00\x83\x00\x0c\x01\x03\x00\x08" + bytes.fromhex(WWN))
    made = {
        "sys/block/sda/device/wwid": f"naa.{WWN}\n", "sys/block/sda/device/vpd_pg80": page80,
        "sys/block/sda/device/vpd_pg83": page83, "sys/block/sda/size": "2048",
        "sys/block/sda/dev": "8:0", "sys/block/sda/stat": "1 2 3 4", "sys/block/sda/hidden": "0",
        "sys/block/sda/device/model": "SA400S37240G1234", "sys/block/sda/device/vendor": "ATA",
        "sys/block/sda/device/rev": "SBFK71E0", "sys/block/sda/queue/scheduler": "none [bp]",
        "sys/block/sda/queue/iosched/depth": "4", "sys/block/sda/mq/0/nr_tags": "32",
        "sys/block/sda/queue/logical_block_size": "512",
        "sys/block/mmcblk0/device/serial": "0x1b2c3d4e",
        "sys/block/dm-0/dm/name": "vault--inner-root",
        "sys/block/dm-0/dm/uuid": "LVM-abcDEF123456ghi", "sys/class/nvme/nvme0/serial": "7712345 ",
        "sys/class/net/eth0/address": "d0:37:45:aa:bb:cc",
        "sys/bus/usb/devices/1-2/serial": "4C530001", "etc/hostname": f"{HOST}.example.org",
        "proc/sys/kernel/hostname": HOST,
        "etc/os-release": 'PRETTY_NAME="Some Linux 12"\nID=some\n',
        "etc/passwd": f"root:x:0:0:root:/root:/bin/sh\n{PERSON}:x:1000:1000:Ann Abel,,,:"
                      f"/home/{PERSON}:/bin/sh\npass:x:1001:1001::/home/pass:/bin/sh\n",
        "proc/self/mountinfo": "\n".join((
            r"30 1 8:1 / /mnt/secret\040place rw - ext4 /dev/sda1 rw",
            "31 1 0:40 / /mnt rw - nfs4 filer9.corp.example:/export rw",
            "32 1 0:41 / /mnt rw - cifs //nas07/share rw",
            "33 1 0:42 / /mnt rw - fuse.sshfs carla@sparrow:/x rw",
            "34 1 0:4 / / rw - zfs tank/a")),
        "proc/cmdline": f"root=UUID={UUID} ro quiet nvme_core.multipath=N",
        "run/udev/data/b8:1": f"E:ID_FS_UUID={UUID}\nE:ID_FS_LABEL={LABEL}\n",
        "run/udev/data/b8:16": "E:ID_SERIAL_SHORT=AA00112233445566\nE:ID_BUS=usb\n",
        "dev/disk/by-id/usb-Stick_9-0:0": "", "run/udev/data/c1:1": "E:ID_SERIAL_SHORT=urandom\n",
        "sys/module/bp_iosched/srcversion": "533BB7E5866E52F63B9ACCB",
        "sys/module/bp_iosched/parameters/depth": "0"}
    for path, data in made.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data if isinstance(data, bytes) else data.encode())
    machine.ROOT = str(folder)
    for module in (of_drive, kernel_log, of_drive.drives):
        module.BLOCK = folder / "sys/block"


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
                         0.5))
    check([each.value for each in found] == [0, None, 4, None, 8], "the others have answered")
    check(all("no answer within 0.5 s" in found[number].why for number in (1, 3)), found[1].why)
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
print(bounded.answer(lambda: time.sleep(20), bounded.Budget(), 0.3).why)
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
    why = answer(lambda: bounded.output_of(["sleep", "100"]), Budget(), 0.3).why
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


def redactor():
    """What leaves out the names of the machine."""
    found, lacking = names.known(Budget())
    check(not lacking, f"all was asked {lacking or ''}")
    return redact.Redactor(found, {"some", "sda", *schedulers.ALL},
                           redact.tokens(["SA400S37240G1234", "533BB7E5866E52F63B9ACCB"]))


def gone(clean, text, *secrets):
    """Check that secrets are not in a text any more."""
    said = clean(text)
    left = [word for word in secrets
            if re.sub(r"[\W_]", "", word).lower() in re.sub(r"[\W_]", "", said).lower()]
    check(not left, f"{text[:60]!r}: {said[:90]!r} {left or ''}")


def some_unknown(folder):
    """A file that does not answer takes no other name with it, and the report says so."""
    real, first = names.text_at, folder / "etc/hostname"
    (folder / "sys/block/sdz").mkdir()

    def text_at(path):
        if path in ("etc/passwd", "sys/block/sdz/serial"):
            time.sleep(99)
        if path == "etc/mailname":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(path)
    names.text_at = text_at
    bounded_answers = names.answers
    names.answers = lambda call, items, budget: bounded_answers(call, items, budget, 0.3)
    os.environ["DOAS_USER"] = "philippa"
    found, lacking = names.known(Budget())
    values = {value for _, value in found}
    check({f"naa.{WWN}", HOST, first.read_text(), UUID, "philippa", os.uname().nodename,
           "vault-inner"} <= values and PERSON not in values, f"others are known: {len(values)}")
    check(lacking == ["names that are NOT left out (sys/block/sdz, etc/passwd): no answer within "
                      "0.3 s", "names that are NOT left out (etc/mailname): Input/output error"],
          f"{lacking}")
    os.chdir(folder)
    said, text = called("report", "sda", "-o", "unknown.txt"), (folder / "unknown.txt").read_text()
    check("NOT replaced" in text.splitlines()[0] and "is replaced, as by" not in text and
          "names that are NOT left out (sys/block/sdz, etc/passwd)" in said, text.splitlines()[0])
    names.text_at, names.answers = real, bounded_answers
    del os.environ["DOAS_USER"]
    (folder / "sys/block/sdz").rmdir()


def known_names(clean):
    """Known values go in all ways of writing."""
    for text in (SERIAL, SERIAL.lower(), f"x{SERIAL}y", " ".join(SERIAL), r"\x20".join(SERIAL),
                 SERIAL[:7] + "_" + SERIAL[7:], SERIAL.encode().hex(" "), f"\n{SERIAL}\n"):
        gone(clean, text, SERIAL)
    for text in (WWN, f"0x{WWN}", f"naa.{WWN}", f"wwn-0x{WWN}-part1", WWN.upper(),
                 ":".join(re.findall("..", WWN)), " ".join(re.findall("..", WWN))):
        gone(clean, text, WWN)
    for text in (UUID, UUID.upper(), UUID.replace("-", ""), UUID.replace("-", r"\x2d")):
        gone(clean, text, UUID)
    for text in (f"a host {HOST}:", f"{HOST}.example.org", HOST.upper(), f"{PERSON}'s",
                 f"/home/{PERSON}/x", "by Ann Abel.", LABEL, LABEL.lower(), "/mnt/secret place/x",
                 r"/mnt/secret\040place", "/dev/vault-inner/root", "vault--inner-root",
                 "stick aa00112233445566!", "usb-Stick_9-0:0-part1", "1B2C3D4E", "0x1b2c3d4e",
                 "no. 7712345,", "lost filer9.corp.example", "filer9 is away", "to NAS07.",
                 "sparrow of carla"):
        gone(clean, text, *SECRETS, "Stick_9", "filer9", "nas07", "sparrow", "carla")
    for _ in range(300):
        secret = DICE.choice([SERIAL, WWN, UUID, "AA00112233445566"])
        gap = DICE.choice(["", " ", "_", "-", ":", ".", "  ", r"\x2d", r"\040"])
        odd = "".join(DICE.choice("<>{}$\\%^*([ \t,;'\"é\x1b") for _ in range(5))
        text = odd + "".join(char + (gap if DICE.random() < 0.3 else "") for char in secret) + odd
        if re.sub(r"[\W_]", "", secret).lower() in re.sub(r"[\W_]", "", re.sub(
                r"\\x[0-9a-f]{2}|\\[0-7]{3}", "", clean(text))).lower():
            check(False, f"{text!r}: {clean(text)!r}")
    check(clean(f"{SERIAL} and {SERIAL.lower()}").count(clean(SERIAL)) == 2, "the same mark")


def unknown_names(clean):
    """What looks like a name of a drive that has gone, or of something else, goes too."""
    for text, secret in (
            ("usb 1-3: SerialNumber: ZZ 99 X", "ZZ 99 X"), ("Serial Number: abc", "abc"),
            ('ENV{ID_SERIAL_SHORT}=="q w"', "q w"), ("ATTRS{serial}=='q1'", "q1"),
            ("ID_WWN=0xff", "0xff"), ("systemd[1]: Hostname set to <otter>.", "otter"),
            ("root=UUID=12ab-34cd ro", "12ab-34cd"), ("PARTUUID=0badcafe-01", "0badcafe"),
            ("/dev/disk/by-id/ata-X_Y1", "X_Y1"), ("/dev/disk/by-path/ip-1", "ip-1"),
            ("dev-disk-by\\x2did-ata\\x2dX9.device", "X9"), ("/dev/mapper/luks-x", "luks-x"),
            ("x.password=hunter2 quiet", "hunter2"),
            ("in /home/otto/file", "otto"), ("/run/media/otto/Stick", "otto"),
            ("nqn.2014-08.org.nvmexpress:uuid:ab", "uuid:ab"), ("iqn.2001.x:disk", "disk"),
            ("naa.600508b1001c0001", "600508b1001c0001"), ("eui.0025385b", "0025385b"),
            ("from 192.168.7.33 to", "192.168.7.33"), ("fe80::d237:45ff:feaa:1", "d237"),
            ("2001:db8:1:2:3:4:5:6", "db8"), ("me@box.example", "box"),
            ("link d0:37:45:aa:bb:c1 up", "d0:37:45:aa:bb:c1"),
            ("S5GXNX0T123456", "S5GXNX0T123456"),
            ("crypt 0123456789abcdef0123456789", "0123456789abcdef"),
            ("BTRFS: device label Alice Holiday devid 1 transid 5 /dev/sda", "Alice Holiday"),
            ("nfs: server owl.corp.example not responding", "owl"), ("lockd: server owl OK", "owl"),
            (r"CIFS: VFS: \\owl has not responded", "owl"), (r"VFS: \x5c\x5cowl\x5cs BAD", "owl"),
            ("CIFS: Attempting to mount //owl/share", "owl"), ("nfsroot=owl:/x,v3 ro", "owl"),
            *(("cifsroot=//owl/share,user=bob,pass=swordfish ro", secret)
              for secret in ("owl", "bob", "swordfish"))):
        gone(clean, text, secret)


def others_stay(clean):
    """What is no name stays as it is."""
    for text in ("[    1.234567] ata1.00: ATA-11: Samsung SSD 860 EVO 1TB, RVT04B6Q, max UDMA/133",
                 "nvme 0000:01:00.0: timeout, I/O 12 QID 1", "sd 0:0:0:0: [sda] tag#0 FAILED",
                 " bp_dispatch_request+0x1a/0x40 [bp_iosched]", "none [mq-deadline] kyber pass",
                 "2808663 128328 104733546 18233234", "6.12.43+deb13-amd64", "0.9.0",
                 "Some Linux 12",
                 "SA400S37240G1234", "533BB7E5866E52F63B9ACCB", "I/O error, dev sda, sector 2048",
                 "INFO: task fio:123 blocked for more than 120 seconds.", "12:34:56", "2026-01-30",
                 "Wear 7712 of 345, 00000000: 0000 0000", "pass: depth 4", "a // comment",
                 "pass_iosched: loading out-of-tree module taints kernel.", "user: read error",
                 "BTRFS info (device sda1): using crc32c", r"a\x5cb \n", "/sys//block"):
        check(clean(text) == text, f"it stays: {clean(text)}")
    check(clean(f"quiet root=UUID={UUID} ro nvme_core.multipath=N") ==
          f"quiet root=UUID={clean(UUID)} ro nvme_core.multipath=N", "the rest of a line stays")


def long_lines(clean):
    """No line of the longest text takes long."""
    began = time.monotonic()
    for part in ("a.", "serial", "ID_", "ID_SERIAL", "serial ", "serial: <", "serial: \"", "ab:",
                 "nqn.a:", "deadbeef-", "A1", "/home/", "dev-disk", "//a", "\\\\a", "serial]",
                 "BTRFS: device label ", "user=", "serial=", " "):
        clean((part * bounded.MOST_TEXT)[:bounded.MOST_TEXT // 2])
        took = time.monotonic() - began
        check(took < SOON, f"lines of {part!r} until {took:.1f} s")


def odd_names():
    """Names that are words of a report, or patterns, do no harm."""
    clean = redact.Redactor([("serial", "(a+)+[z$]9"), ("serial", "12"), ("serial", "0001"),
                             ("user", "x"), ("label", "boot"), ("host", "some"),
                             ("mount", "/a(b"), ("user", "José")], {"some"})
    check(clean("depth 12 of 0001, x boot Some /a(bc") == "depth 12 of 0001, x boot Some /a(bc",
          "short and usual ones stay")
    check(clean("(a+)+[z$]9 /a(b/c of José") == "(a+)+[z$]9 <mount-1>/c of <user-1>",
          f"patterns are text: {clean('(a+)+[z$]9 /a(b/c of José')}")
    clean = redact.Redactor([("serial", "AB\nCD12345"), ("serial", "Nº Ж")])
    check(clean(r"AB\x0aCD12345 AB CD12345 a Nº Ж b") == "<serial-1> <serial-1> a <serial-2> b",
          f"odd characters: {clean('AB CD12345 a Nº Ж b')}")
    many = redact.Redactor([("serial", f"S{number:08}X") for number in range(3000)])
    began = time.monotonic()
    text = "\n".join(f"sd {number}: a line of a log about S{number:08}X" for number in range(2000))
    check("S0" not in many(text) and time.monotonic() - began < SOON, "of many drives in time")


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
        time.sleep(99)
    hanging = [(machine, "output_of"), (machine, "config_text"), (machine, "dkms_lines"),
               (machine, "dkms_log"), (of_drive, "setters"), (of_drive, "kept")]
    kept = [getattr(module, name) for module, name in hanging]
    limits = report_command.Budget, report_command.MACHINE_S
    for module, name in hanging:
        setattr(module, name, asleep)
    report_command.Budget, report_command.MACHINE_S = (lambda seconds=4: Budget(seconds)), 1
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


def called(*words, status=0):
    """Call ssdctl in this process; return what it prints."""
    out, errors = io.StringIO(), io.StringIO()
    sys.argv = ["ssdctl", *map(str, words)]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        ended = command.main()
    check(ended == status, f"{' '.join(sys.argv)}: {ended} {errors.getvalue().strip()}")
    return out.getvalue() + errors.getvalue()


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
        clean = redactor()
        some_unknown(folder)
        known_names(clean)
        unknown_names(clean)
        others_stay(clean)
        long_lines(clean)
        odd_names()
        hanging_root()
        log()
        results(folder)
        whole(folder)


if __name__ == "__main__":
    main()
