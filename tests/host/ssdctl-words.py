#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# The man page and the completions of ssdctl know every command and option, those of ssd-probe every
# option; bash and zsh complete them; ssdctl, DKMS and the build support the same kernels; all that
# names schedulers names those that there are
# quick: host

import pathlib
import re
import shutil
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = PROJECT / "tools/ssdctl"
sys.path[:0] = [str(PROJECT / "tests/lib"), str(TOOL), str(PROJECT / "tools/common"),
                str(PROJECT / "tools/ssd-probe")]

from checks import check, run  # noqa: E402  (in a folder added above)
from host import man_page_is_clean  # noqa: E402
from ssd_common import arguments, policies  # noqa: E402
from ssd_ctl import command, drives, schedulers  # noqa: E402
from ssd_ctl.choice import QUEUE  # noqa: E402
from ssd_probe import command as probe  # noqa: E402
from terminal import Terminal  # noqa: E402

PAGE, BASH, ZSH = (TOOL / name for name in
                   ("ssdctl.8", "completion/ssdctl.bash", "completion/_ssdctl"))
# Call the completion of the words that are given; the last one is being typed.
COMPLETE = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ssdctl; '
            'printf "%s\\n" "${COMPREPLY[@]}"')
# What zsh is told before it completes.
COMPLETER = (f"unset zle_bracketed_paste; PS1='READY> '; fpath=({ZSH.parent} $fpath); "
             "autoload -Uz compinit; compinit -u -D\n")


def options_of(name):
    """The long options of a command."""
    parser = arguments.Parser(add_help=False)
    command.options_of(name).add_options(parser)
    return {word for action in parser._actions for word in action.option_strings
            if word.startswith("--")}


def part(text, name, start, end):
    """The part of a text that is about a command."""
    found = re.search(rf"{start.format(re.escape(name))}.*?(?={end})", text, re.S | re.M)
    check(found, f"{name} is there")
    return found[0]


def all_named():
    """Each file names all options of each command."""
    page = PAGE.read_text().replace("\\-", "-")
    bash, zsh = BASH.read_text(), ZSH.read_text().replace("$json", "--json").replace(
        "$unsure", "--even-unsure")
    for name in command.COMMANDS:
        check("--json" in options_of(name), f"{name} knows --json")
        for option in sorted(options_of(name)):
            synopsis = re.search(rf"^\.B ssdctl {name}\n.*", page, re.M)
            places = {PAGE: part(page, name, r"^\.SS {}$", r"^\.S[SH]") +
                      (synopsis[0] if synopsis else ""),
                      BASH: part(bash, name, r"^\t(\S+\|)?{}(\|\S+)?\) options", ";;"),
                      ZSH: part(zsh, name, r"^\t{}\)$", ";;")}
            lacks = [path.name for path, text in places.items() if option not in text]
            check(not lacks, f"{name} {option} {lacks or ''}")


def probe_named():
    """Each file names all options of ssd-probe."""
    page = (PROJECT / "tools/ssd-probe/ssd-probe.8").read_text().replace("\\-", "-")
    options = {word for action in probe.option_parser()._actions
               for word in action.option_strings if word.startswith("--")} - {"--help"}
    for option in sorted(options):
        lacks = [name for name, text in (
            ("ssd-probe.8", page), (BASH.name, part(BASH.read_text(), "_ssd_probe()", "^{}", "^}")),
            (ZSH.name, part(ZSH.read_text(), "_ssd_probe()", "^{}", "^}"))) if option not in text]
        check(not lacks, f"ssd-probe {option} {lacks or ''}")


def completed(*words, name="ssdctl"):
    """What bash completes."""
    return run("bash", "-c", COMPLETE.replace("_ssdctl", f"_{name.replace('-', '_')}"), "-",
               str(BASH), name, *words).split()


def completes():
    """Words in their places are completed."""
    for words, meant in ((("rec",), ["recommend"]), (("rev",), ["revert"]),
                         (("apply", "x", "p"), ["pass", "piq", "pai"]),
                         (("persist", "--by-m"), ["--by-model"]), (("hwdb", "o"), ["on", "off"]),
                         (("persist", "--by-model", "x", "bp", "nr_"), ["nr_requests="]),
                         (("apply", "x", "bp", "no"), ["nomerges="]),
                         (("persist", "--rec"), ["--recommended"]),
                         (("recommend", "--p"), ["--probe"]),
                         (("apply", "x", "bp", "depth", "=", "1"), []),
                         (("advise", "--workload", "desktop", "--pro"), ["--probe"]),
                         (("advise", "x", "--json", "=", str(ZSH)[:-2]), [str(ZSH)]),
                         (("--json", "--i"), ["--interval"])):
        check(completed(*words) == meant, f"{' '.join(words)}: {completed(*words)}")
    for words, meant in ((("--fr",), ["--fresh", "--from"]), (("--seed", ""), []),
                         (("--from", str(ZSH)[:-2]), [str(ZSH)]),
                         (("--json", "=", str(ZSH)[:-2]), [str(ZSH)])):
        found = completed(*words, name="ssd-probe")
        check(found == meant, f"ssd-probe {' '.join(words)}: {found}")
    drives = completed("status", "")
    for words in (("advise", "--on", "/file"), ("top", "--interval", "1"), ("--json",)):
        found = [word for word in completed(*words, "") if not word.startswith("--")]
        check(found == [word for word in drives if not word.startswith("--")],
              f"{' '.join(words)}: {found}")


def same_names():
    """The completions, the man page and the database's file name all settings of the queue; the
    completions leave out what ssdctl does not list."""
    for path in (BASH, ZSH, PAGE, TOOL / "udev/60-ssd-iosched.hwdb"):
        lacks = [name for name in QUEUE if name not in path.read_text()]
        check(not lacks, f"{path.name} names the settings of the queue {lacks or ''}")
    names = re.findall(r"[a-z]+", drives.NO_DRIVE.pattern.partition(")(")[0])
    names += ["mmcblk*boot", "mmcblk*rpmb", "mmcblk*gp"]
    for path in (BASH, ZSH):
        text = path.read_text().replace("mmcblk*(boot|rpmb|gp)", " ".join(names[-3:]))
        lacks = [name for name in names if name not in text]
        check(not lacks, f"{path.name} leaves out {len(names)} kinds {lacks or ''}")


def zsh_completes():
    """zsh completes words and shows options."""
    shell = Terminal(["zsh", "-f", "-i"])
    shell.type(COMPLETER.encode())
    shell.until(rb"\x1b\[JREADY> ", "zsh is ready")
    for typed, shown in (("rev", "revert"), ("status --i", "--interval"), ("--v", "--version"),
                         ("apply x mq", "mq-deadline"), ("persist --by-m", "--by-model"),
                         ("persist x bp nr", "nr_requests="), ("hwdb of", "off"),
                         ("top --o", "--once"), ("undo-all --j", "--json"),
                         ("advise --workload da", "database"), ("revert --h", "--help")):
        # Ctrl-U empties the line.
        shell.type(f"\x15ssdctl {typed}\t".encode())
        rest = re.escape(shown[len(typed.split()[-1]):])
        shell.until(rf"{re.escape(typed)}(\x1b\[\S*?m)*{rest}".encode(), f"zsh: {typed}")
    shell.type(b"\x15ssd-probe --dest\t")
    shell.until(rb"--dest(\x1b\[\S*?m)*roy", "zsh: ssd-probe --dest")
    check(b"_arguments" not in shell.said, "zsh does not complain")
    shell.type(b"\x15exit\n")
    shell.child.wait(10)


def same_kernels():
    """ssdctl names the oldest kernel that DKMS builds for."""
    dkms = re.search(r'BUILD_EXCLUSIVE_KERNEL="(.*)"', (PROJECT / "dkms.conf").read_text())[1]
    for series in ("4.19", "5.10", "6.0", "6.1", "6.6", "6.12", "7.0", "7.2", "10.1"):
        builds = bool(re.match(dkms, f"{series}.0-1-amd64"))
        check(builds == (tuple(map(int, series.split("."))) >= schedulers.OLDEST),
              f"dkms.conf: {series}")


def same_schedulers():
    """The table of this project's schedulers has those with a source, and no other, and what is
    written from it is up to date; DKMS builds all of them, and Kconfig has them."""
    there = {path.name.removesuffix("-iosched.c") for path in PROJECT.glob("*-iosched.c")}
    check({*policies.NAMES} == there, f"the table has {policies.listed('and')}")
    run(PROJECT / "scripts/doc-tables", "--check")
    options = set(re.findall(r"^config MQ_IOSCHED_(\w+)$", (PROJECT / "Kconfig").read_text(), re.M))
    check(options - {"SSD_KUNIT_TEST"} == {name.upper() for name in there},
          f"Kconfig has {sorted(options)}")
    told = run("bash", "-c", 'kernelver=6.12; . "$0"; echo "${BUILT_MODULE_NAME[@]}"',
               PROJECT / "dkms.conf").split()
    check({*told} == {f"{name}-iosched" for name in there}, f"DKMS builds {' '.join(told)}")


def main():
    same_schedulers()
    all_named()
    same_names()
    probe_named()
    completes()
    same_kernels()
    if shutil.which("zsh"):
        zsh_completes()
    man_page_is_clean(PAGE)


if __name__ == "__main__":
    main()
