# SPDX-License-Identifier: GPL-2.0
"""The project's schedulers. In the checkout the sources NAME-iosched.c are the table, of which the
build, DKMS and the tests derive theirs; a machine with the programs has no sources, and takes this
one, a line for each. scripts/doc-tables writes the lists in the completions, the packages'
descriptions and the hardware database from it."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Policy:
    """A scheduler. @mark: a tunable that no other one has, by which udev's rules know it; "": none
    is its own. @files: those that only it has in debugfs."""
    mark: str = ""
    files: tuple[str, ...] = ()


POLICIES = {
    "pass": Policy("region_size_mb", ("regions",)),
    "piq": Policy("buffered_writes", ("units", "batches", "piq")),
    "bp": Policy("block_size_kb", ("preference", "anticipation")),
    "pai": Policy("clustered_page_kb", ("classes",)),
}
NAMES = tuple(POLICIES)


def listed(word: str) -> str:
    """Return the names in a sentence, the last one after a @word."""
    return f"{', '.join(NAMES[:-1])} {word} {NAMES[-1]}"
