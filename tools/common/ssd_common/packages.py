# SPDX-License-Identifier: GPL-2.0
"""What the programs need and may miss: Python modules, the folders of system programs."""
import importlib
import os
import types

from ssd_common import ToolError

# {module: Debian's package}.
PACKAGES = {"numpy": "python3-numpy", "scipy": "python3-scipy", "matplotlib": "python3-matplotlib",
            "jinja2": "python3-jinja2", "jsonschema": "python3-jsonschema"}


def remedy(missing: str, program: str) -> str:
    """Return what to do about a missing module."""
    package = PACKAGES.get(missing.partition(".")[0])
    return f"install {package}" if package else f"install {program} anew"


def need(module: str) -> types.ModuleType:
    """Return a module. Raise ToolError if it is missing: what needs it at the end fails at the
    beginning."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        raise ToolError(f"{missing} is missing: {remedy(missing, 'it')}") from None


def with_sbin() -> dict[str, str]:
    """Return the environment, with the folders of system programs in PATH."""
    path = os.environ.get("PATH", "")
    return {**os.environ, "PATH": f"{path}:/usr/sbin:/sbin", "LC_ALL": "C"}
