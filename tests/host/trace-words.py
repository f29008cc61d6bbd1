#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# The man page and the completions of trace-to-fio know every option, format and name of a column;
# the document knows every format; bash and zsh complete them
# quick: host
import pathlib
import re
import shutil
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "lib"))

from checks import check, run  # noqa: E402  (in a folder added above)
from host import man_page_is_clean  # noqa: E402
from terminal import Terminal  # noqa: E402
from traces import PROJECT, TOOL  # noqa: E402

from trace_to_fio import command  # noqa: E402
from trace_to_fio.formats.known import all_formats  # noqa: E402
from trace_to_fio.formats.columns import NAMES  # noqa: E402

PAGE, BASH, ZSH = (TOOL / name for name in ("trace-to-fio.1", "completion/trace-to-fio.bash",
                                            "completion/_trace-to-fio"))
COMPLETE = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _trace_to_fio; '
            'printf "%s\\n" "${COMPREPLY[@]}"')
COMPLETER = (f"unset zle_bracketed_paste; PS1='READY> '; fpath=({ZSH.parent} $fpath); "
             "autoload -Uz compinit; compinit -u -D\n")


def named():
    """Each file names what there is."""
    page = PAGE.read_text().replace("\\-", "-").replace("\\", "")
    document = (PROJECT / "Documentation/traces.md").read_text()
    texts = {PAGE.name: page, BASH.name: BASH.read_text(), ZSH.name: ZSH.read_text()}
    options = {word for action in command.option_parser()._actions
               for word in action.option_strings if word.startswith("--")}
    formats = {*all_formats(), command.VSCSI}
    for word in sorted(options | formats):
        lacks = [name for name, text in texts.items()
                 if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)
                 and (word, name) != ("--help", PAGE.name)]
        check(not lacks, f"{word} {lacks or ''}")
    check(not [word for word in NAMES if word not in page], "the page names all columns")
    check({*re.findall(r"^\| `([\w-]+)` \|", document, re.M)} == formats, "the document's formats")


def completed(*words):
    """What bash completes."""
    return run("bash", "-c", COMPLETE, "-", str(BASH), "trace-to-fio", *words).split()


def completes():
    """Words in their places are completed."""
    for words, meant in ((("--inf",), ["--info"]),
                         (("--format", "blk"), ["blkparse", "blkparse-f"]),
                         (("--format", "=", "fe"), ["femu"]), (("--op", "w"), ["write"]),
                         (("--align", ""), []), (("--picture", str(ZSH)[:-2]), [str(ZSH)]),
                         (("-q", str(ZSH)[:-2]), [str(ZSH)])):
        check(completed(*words) == meant, f"{' '.join(words)}: {completed(*words)}")


def zsh_completes():
    """zsh completes options and their words."""
    shell = Terminal(["zsh", "-f", "-i"])
    shell.type(COMPLETER.encode())
    shell.until(rb"\x1b\[JREADY> ", "zsh is ready")
    for typed, rest in (("--inf", "o"), ("--format fe", "mu"), ("--event=Q --skip", "-malformed")):
        shell.type(f"\x15trace-to-fio {typed}\t".encode())
        shell.until(rf"{re.escape(typed)}(\x1b\[\S*?m)*{rest}".encode(), f"zsh: {typed}")
    shell.type(b"\x15exit\n")
    shell.child.wait(10)


def main():
    named()
    completes()
    if shutil.which("zsh"):
        zsh_completes()
    man_page_is_clean(PAGE)


if __name__ == "__main__":
    main()
