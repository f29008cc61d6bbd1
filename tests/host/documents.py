#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# check-documents finds each kind of fault once, by file and line, and nothing in what is right
# quick: host

import pathlib
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(PROJECT / "tests/lib"))

from checks import check  # noqa: E402  (in a folder added above)

GOOD = {
    "Makefile": "# SPDX-License-Identifier: GPL-2.0\nX := 1\ncheck: all ## run it\nall:\n",
    "debian/changelog": "ssd-iosched (1.2) unstable; urgency=medium\n",
    "CHANGELOG.md": "# Changelog\n\n## 1.2\n\n## 1.1\n",
    "CITATION.cff": "# SPDX-License-Identifier: GPL-2.0\nversion: 1.2\n",
    "MAINTAINERS": "A\nF:\ttools/*.py\nF:\tdebian/\nF:\t*/\n",
    "tools/a.py": "# SPDX-License-Identifier: GPL-2.0\n",
    "tools/run": "#!/bin/sh\n# SPDX-License-Identifier: GPL-2.0\n",
    "Documentation/page.md": "# What `it` does: a [link](../README.md)\n\n## Twice\n\n## Twice\n\n",
    "README.md": """# Title

[page](Documentation/page.md#what-it-does-a-link), [again](Documentation/page.md#twice-1),
[over two
lines](#title), [folder](tools), [elsewhere](https://example.org/none), `[no](link)`.
`make check X=2`, `tools/{a,b}.NAME`, `tools/*.py`, `include/trace/x.h`, `a.py`, `/usr/none.py`.

    make all            # make nothing of it
    tools/run --none/x NAME.py
""",
}
# (file, what is added to it or replaced in it, line of the fault, what is found)
FAULTS = [
    ("README.md", "[x](none.md)\n", 10, "no such file: none.md"),
    ("README.md", "[x](../outside.md)\n", 10, "no such file: ../outside.md"),
    ("README.md", "[x](/README.md)\n", 10, "no such file: /README.md"),
    ("README.md", "[x](#none)\n", 10, "no such heading: #none"),
    ("README.md", "![x](Documentation/page.md#twice-2)\n", 10,
     "no such heading: Documentation/page.md#twice-2"),
    ("README.md", '<img src="none.svg">\n', 10, "no such file: none.svg"),
    ("README.md", "`make none`\n", 10, "no such target: make none"),
    ("README.md", "\n    X=1 make check none\n", 11, "no such target: make none"),
    ("README.md", "```\nmake none\n```\n", 11, "no such target: make none"),
    ("README.md", "`tools/none`\n", 10, "no such path: tools/none"),
    ("README.md", "\n    tools/*.c --help\n", 11, "no such path: tools/*.c"),
    ("README.md", "`tools/run/`\n", 10, "no such path: tools/run/"),
    ("README.md", "`none/a.py`\n", 10, "no such file: none/a.py"),
    ("MAINTAINERS", "F:\ttools/*.c\n", 5, "no such file: tools/*.c"),
    ("CITATION.cff", ("1.2", "1.3"), 2, "debian/changelog has the version 1.2"),
    ("CHANGELOG.md", ("1.2", "Next"), 3, "debian/changelog has the version 1.2"),
    ("tools/a.py", ("SPDX", ""), 1, "no line SPDX-License-Identifier: GPL-2.0"),
    ("tools/run", ("SPDX", ""), 1, "no line SPDX-License-Identifier: GPL-2.0"),
    ("Documentation/page.md", "\n" * 95, 1, "101 lines, 100 at most"),
    ("Documentation/page.md", "x" * 121 + "\n", 7, "121 columns, 120 at most"),
]


def made(root, files):
    """Write a tree."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def faults(root):
    """Return what check-documents prints about a tree, and its exit status."""
    done = subprocess.run([PROJECT / "scripts/check-documents", root], text=True, check=False,
                          capture_output=True)
    return done.stdout.splitlines() + done.stderr.splitlines(), done.returncode


with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(temporary)
    subprocess.run(["git", "init", "-q", folder], check=True)
    made(folder, GOOD)
    check(faults(folder) == ([], 0), f"nothing is found in what is right: {faults(folder)}")
    for name, change, line, text in FAULTS:
        made(folder, {**GOOD, name: GOOD[name] + change if isinstance(change, str) else
                      GOOD[name].replace(*change)})
        found = faults(folder)
        check(found == ([f"{name}:{line}: {text}"], 1), f"{name}:{line}: {text}: {found[1]}")
