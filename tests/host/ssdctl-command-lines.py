#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# ssdctl advise --fio takes a command line of fio as a report has it, by the rules of a job file: of
# random ones fio gets nothing that names a program or another place
# quick: host
"""What a pasted command line comes to."""

import pathlib
import random
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/common")]

from host import need  # noqa: E402  (in a folder added above)

need("numpy")

import job_fuzz  # noqa: E402  (in a folder added above)
from checks import SEED, check  # noqa: E402
from ssd_common.arguments import Parser  # noqa: E402
from ssd_ctl import CtlError, UsageError, advise_options  # noqa: E402
from ssd_ctl.advice import workload  # noqa: E402

COMMANDS = 500
# A command line as a report has it.
PASTED = """$ sudo fio --name=randwrite --filename=/dev/sdb --ioengine=libaio --iodepth=32 \\
    --rw=randwrite --bs=4k --direct=1 --size=10G --numjobs=4 --runtime=60 \\\t
    --time_based --group_reporting --output-format=json --output out.json | tee log
"""


def refused(call, because):
    """Check that a call is refused in one line that a terminal may have."""
    try:
        call()
    except CtlError as error:
        check(because in str(error) and str(error).isprintable(), f"refused: {error}")
    else:
        check(False, f"not refused: {because}")


def jobs_of(text):
    """Return the jobs of a command line: their names and options."""
    load = workload.of_command(text)
    return {job.name: load.options(job) for job in load.jobs}


def command_lines():
    """A command line is taken as a report has it: with fio before it and a pipe behind it, over
    several lines, with values in words of their own, and with the dashes of a word processor."""
    plain = {"rw": "randread", "bs": "4k"}
    check(jobs_of(PASTED) == {"randwrite": {
        "ioengine": "libaio", "iodepth": "32", "rw": "randwrite", "bs": "4k", "direct": "1",
        "numjobs": "4"}}, f"as pasted: {jobs_of(PASTED)}")
    for text in ("--rw=randread --bs=4k", "-rw=randread -bs=4k", "--rw randread --bs 4k",
                 "fio --rw=randread --bs=4k 2>&1", "# /usr/bin/fio --readwrite=randread --bs '4k'",
                 "\u2013rw=randread \u2014bs=4k", "\u2013-rw=\u201crandread\u201d --bs=4k",
                 "--rw=randread\n--bs=4k\n", "fio --rw=randread \\ --bs=4k > out; rm out",
                 "fio --rw=randread --bs=4k # it is slow",
                 "numactl -N 0 fio --rw=randread\xa0--bs=4k --name=fio --eta always --minimal",
                 "$ fio --bs=4k \\\n> --rw=randread \\\n> --name=fio > out",
                 "> fio --rw=randread\n> --bs=4k", "```fio --rw=randread --bs=4k```",
                 "fio --rw=randread ^\n  --bs=4k", "fio --rw=randread `\r\n  --bs=4k",
                 "```sh\nfio --rw=randread --bs=4k\n```", "Command: `fio --rw=randread --bs=4k`",
                 "(fio --rw=randread --bs=4k)", "\u201cfio --rw=randread --bs=4k\u201d",
                 "fio --rw=randread --bs=4k; sync", "fio --rw=randread --bs=4k|tee log",
                 "for i in 1 2; do fio --rw=randread --bs=4k; done",
                 "fio --rw=randread --bs=4k\nfio: (g=0): rw=randread, bs=(R) 4096B\nfio-3.33\n",
                 "strace -f fio --rw=randread --bs=4k --", "./fio-3.36/fio.exe -rw=randread -bs=4k",
                 "docker run --rm -v /d:/d --name fio some/fio fio --rw=randread --bs=4k",
                 "--thread --rw=randread --bs=4k --thread=0"):
        found = jobs_of(text)
        check([{key: value for key, value in job.items() if key != "thread"}
               for job in found.values()] == [plain] and list(found) == ["fio"], f"{text!r}")
    check(jobs_of("--bs=4k --name=a --rw=read --name=b --rw=write --bs=8k") == {
        "a": {"bs": "4k", "rw": "read"}, "b": {"bs": "8k", "rw": "write"}}, "two jobs")
    check(jobs_of("--name=global --bs=4k --name a --stonewall") ==
          {"a": {"bs": "4k", "stonewall": ""}}, "a shared section")
    check(jobs_of("--thread --numjobs=2 --size=25% --filename=/etc/shadow --write_bw_log=x") ==
          {"fio": {"thread": "", "numjobs": "2", "size": "25%"}}, "what is ours is dropped")
    check("/etc" not in workload.of_command("--filename=/etc/shadow").job_file(
        "/dev/measured", 64 << 20, "/logs", 1), "the file that it names is not measured")
    for text, because in (
            ("fio job.fio", "job.fio is no option of fio (a job file is given with --workload)"),
            ("--bs=4k x", "x is no option"), ("# --bs=4k", "# is no option"),
            ("| tee log", "| is no option"), ("--bs", "--fio: bs= in [global]: write a number"),
            ("--rw=randread --ioengine=cpuio", "ioengine=cpuio in [global]: it does no I/O"),
            ("--exec_prerun=reboot", "it runs a program"), ("--client=host", "it runs elsewhere"),
            ("--trigger='rm -rf /'", "it runs a program"), ("--section=a", "use a job file"),
            ("--name=a --read_iolog=/etc/shadow", "in [a]: it replays a trace"),
            ("--name= --bs=4k", "is no section"), ("--name='a\x1b'", "is no section"),
            ("--newoption=1", "it is not known here"), ("--bs='4k", "No closing quotation"),
            ("fio --rw=read\nfio --rw=write", "there are several commands"),
            ("fio --rw=read;fio --rw=write", "there are several commands"),
            ("for s in 4 8; do fio --rw=read --bs=${s}k; done", "s is not set"),
            ("fio --name=a --numjobs=`nproc`", "numjobs=nproc in [a]: write a number"),
            ("--bs=4k\nrw=trim", "rw=trim is no option"), ("--bs='4k\nrw=trim'", "write a number"),
            ("--iodepth=${NONE}", "NONE is not set"), ("--include=/etc/shadow", "not known")):
        refused(lambda text=text: workload.of_command(text), because)


def random_commands():
    """Of random command lines fio gets nothing but what a job may have."""
    dice, accepted = random.Random(SEED), 0
    for _ in range(COMMANDS):
        words = [f"--{dice.choice(job_fuzz.USUAL + job_fuzz.CRAFTED + job_fuzz.EVIL)}"
                 for _ in range(dice.randint(1, 3))]
        try:
            load = workload.of_command(" ".join(words))
        except CtlError as error:
            if not str(error).isprintable():
                check(False, f"printable: {str(error)!r}")
            continue
        accepted += 1
        made = load.job_file("/dev/measured", 64 << 20, "/logs", 1)
        if any(evil in made for evil in (job_fuzz.DRIVE, job_fuzz.FOLDER)):
            check(False, f"fio gets {made!r}")
    check(COMMANDS / 10 < accepted < COMMANDS, f"accepted: {accepted} of {COMMANDS}")


def words_of_ssdctl():
    """--fio takes the next word whatever it begins with, and no --workload beside it."""
    def parsed(*words):
        parser = Parser(prog="ssdctl advise")
        advise_options.add_options(parser)
        args = parser.parse(["sdb", *words])
        advise_options.check_options(args)
        return args
    for text in ("--size=1g --rw=read", "--rw=read", "--json", "-rw read", "fio --rw=read"):
        args = parsed("--fio", text, "--json")
        check((args.fio, args.json, args.device) == (text, "-", "sdb"), f"--fio {text!r}")
    check(parsed("--fio=--rw=read").fio == "--rw=read" and parsed().fio is None and
          parsed("--fio-program", "fio --x").fio_program == "fio --x", "in one word, and without")
    for words in (("--fio", "--rw=read", "--workload", "copy"), ("--fio", " ")):
        try:
            parsed(*words)
            check(False, f"not refused: {words}")
        except UsageError as error:
            check("--fio" in str(error), f"refused: {error}")


def main():
    command_lines()
    random_commands()
    words_of_ssdctl()


if __name__ == "__main__":
    main()
