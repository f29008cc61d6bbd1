#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# ssdctl recommend tells the kinds of the lab's drives behind the kernel's own drivers, and of an
# emulated one; persist --recommended --all keeps it by udev for those that are there and those that
# come, by the hardware database too, not where a drive has a rule of its own, and not at all where
# something else wins; revert and undo-all leave nothing
# check: 6.12
# sd: 64M
# usb: 64M
# uas: 64M
# nvme: 64M
# disk: 64M
# timeout: 900
# precedence: no

import json
import pathlib

from checks import check, modprobe, run, wait_for
from iosched import insert, ours, remove_all
from ssd import Device
from ssdctl import State, has, nothing_left, refused, reload, settle, ssdctl, status_of, udev

RULES = pathlib.Path("/etc/udev/rules.d")
BY_KIND = RULES / "70-ssd-iosched-each-kind.rules"
TRACKS, OTHERS = RULES / "65-test.rules", RULES / "99-test.rules"
CARD = "mmcblk0"
# QEMU's names tell that it is a guest's disk; a card has none of these.
KINDS = {CARD: "sd", "sda": "virtual", "sdb": "virtual", "nvme0n1": "virtual", "vda": "virtual"}


def recommended():
    """What is recommended, by drive."""
    made = json.loads(ssdctl("recommend", "--json")[0])["drives"]
    return {each["name"]: each for each in made}


def told():
    """Each drive is of its kind; what is recommended has its figures and what it rests on."""
    found = recommended()
    kinds = {name: found[name]["kind"] for name in KINDS}
    check(kinds == KINDS, f"kinds: {kinds}")
    card = found[CARD]
    check(card["choice"]["scheduler"] == "pass" and card["gains"] and card["costs"] and
          card["strength"] == "emulated" and card["facts"]["tags"] == "64" and not card["notes"],
          f"the card: {card['facts']}")
    check(all(found[name]["choice"] is None for name in KINDS if name != CARD), "no other one")
    said = ssdctl("persist", "vda", "--recommended")[0]
    check("keeps what it has, and no rule is made" in said, "nor is a rule made")


def replug():
    """Take the card out and put it in again."""
    device = pathlib.Path("/sys/block", CARD, "device").resolve().name
    driver = pathlib.Path("/sys/bus/mmc/drivers/mmcblk")
    (driver / "unbind").write_text(device)
    wait_for(lambda: not pathlib.Path("/sys/block", CARD).exists(), "the end of the card")
    (driver / "bind").write_text(device)
    settle(CARD)


def kept(states):
    """The card keeps it, and other drives what they have."""
    said = ssdctl("persist", "--recommended", "--all")[0]
    check(f"/dev/{CARD} keeps pass\n" in said and "/dev/vda keeps what it has" in said,
          "it is told")
    has(CARD, "pass")
    replug()
    has(CARD, "pass")
    others_same(states)
    found = status_of(CARD)["kept"]
    check(found["by_kind"] == "sd" and found["agrees"] and not found["overruled"], f"{found}")
    check(json.loads(ssdctl("persist", "--recommended", "--all", "--json")[0])["drives"].keys() ==
          {f"/dev/{CARD}"}, "once more")


def others_same(states):
    """All drives but the card are as before."""
    for name, state in states.items():
        if name != CARD:
            state.same(f"{name} is left alone")


def explicit():
    """A drive's own rule, with settings of the queue, wins."""
    ssdctl("persist", CARD, "kyber", "nomerges=2", "add_random=1")
    replug()
    has(CARD, "kyber", nomerges=2, add_random=1)
    said = ssdctl("persist", "--recommended", "--all")[0]
    check(f"/dev/{CARD} keeps kyber" in said and "by its own rule" in said, "its own rule is told")
    has(CARD, "kyber", nomerges=2)


def appears(states):
    """A drive of a model that the database has as QLC is of that kind when it appears, one of
    another model is not."""
    for model, meant in (("Samsung_SSD_870_QVO_1TB", "qlc-other"),
                         ("Samsung_SSD_870_EVO_1TB", "other")):
        TRACKS.write_text(f'KERNEL=="ssdemu*", ENV{{ID_MODEL}}="{model}"\n')
        reload()
        with Device("small") as device:
            plain = State(device.name).files["scheduler"]
            run("udevadm", "trigger", "--action=add", f"/sys/block/{device.name}")
            settle()
            has(device.name, plain)
            kind = recommended()[device.name]["kind"]
            check(kind == meant, f"{model}: {kind}")
        settle()
    TRACKS.unlink()
    reload()
    others_same(states)


def overruled(states):
    """Where another rule wins nothing is installed, for any drive."""
    OTHERS.write_text('ACTION=="add|change", KERNEL=="mmcblk*", ENV{DEVTYPE}=="disk", '
                      'ATTR{queue/scheduler}="none"\n')
    refused_with_lines(f"{OTHERS}:1 sets scheduler", "persist", "--recommended", "--all")
    check(not BY_KIND.exists(), "no rule is left")
    OTHERS.unlink()
    reload()
    for state in states.values():
        state.same("as before")


def refused_with_lines(because, *words):
    """Check that ssdctl refuses, and says why on standard error."""
    _, errors = ssdctl(*words, status=1)
    check(because in errors and errors.count("\n") == 1, f"one line that says {because}")


def main():
    modprobe("-a", "nvme", "mq-deadline")
    for name in ours():
        insert(name)
    with udev():
        settle(*KINDS)
        states = {name: State(name) for name in KINDS}
        told()
        refused("without vda", "persist", "vda", "--recommended", "--all", status=2)
        kept(states)
        ssdctl("revert", CARD)
        check(not BY_KIND.exists(), "the rules by kind are removed")
        states[CARD].same("reverted after the card appeared again")
        overruled(states)
        kept(states)
        appears(states)
        explicit()
        ssdctl("undo-all")
        nothing_left()
        for state in states.values():
            state.same("undone")
        replug()
        states[CARD].same("without rules")
    remove_all()


if __name__ == "__main__":
    main()
