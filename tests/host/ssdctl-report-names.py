#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# ssdctl report leaves out serial numbers and names, in whatever way they are written; what is no
# name stays; what is not known takes no other name with it
# quick: host

import errno
import os
import pathlib
import random
import re
import sys
import tempfile
import time

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/common")]

from host import need  # noqa: E402  (in a folder added above)

need("jsonschema")

from checks import SEED, check  # noqa: E402  (in a folder added above)
from reported import (  # noqa: E402
    HOST, LABEL, PERSON, SECRETS, SERIAL, SOON, UUID, WWN, called, fake_root, gone)
from ssd_ctl import schedulers  # noqa: E402
from ssd_ctl.report import bounded, names, redact  # noqa: E402
from ssd_ctl.report.bounded import Budget  # noqa: E402

DICE = random.Random(SEED)


def redactor():
    """What leaves out the names of the machine."""
    found, lacking = names.known(Budget())
    check(not lacking, f"all was asked {lacking or ''}")
    return redact.Redactor(found, {"some", "sda", *schedulers.ALL},
                           redact.tokens(["SA400S37240G1234", "533BB7E5866E52F63B9ACCB"]))


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
    began = time.process_time()
    for part in ("a.", "serial", "ID_", "ID_SERIAL", "serial ", "serial: <", "serial: \"", "ab:",
                 "nqn.a:", "deadbeef-", "A1", "/home/", "dev-disk", "//a", "\\\\a", "serial]",
                 "BTRFS: device label ", "user=", "serial=", " "):
        clean((part * bounded.MOST_TEXT)[:bounded.MOST_TEXT // 2])
        took = time.process_time() - began
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
    began = time.process_time()
    text = "\n".join(f"sd {number}: a line of a log about S{number:08}X" for number in range(2000))
    check("S0" not in many(text) and time.process_time() - began < SOON, "of many drives in time")


def main():
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        fake_root(folder)
        clean = redactor()
        some_unknown(folder)
        known_names(clean)
        unknown_names(clean)
        others_stay(clean)
        long_lines(clean)
        odd_names()


if __name__ == "__main__":
    main()
