# SPDX-License-Identifier: GPL-2.0
"""The papers' drives, as the presets model them, and what the papers say of them.

pai-*     Parameter-aware I/O management for solid state disks, table 3, sections 4.2.3 to 4.3
bp-*      A new I/O scheduler for solid state devices, section 3.2, figures 8 to 12
pass-ssd1 PASS, section 2, figure 2
piq       Exploiting parallelism for access conflict minimization, section V.A
"""
from probe_draw import Drive

# What the papers give a size for, by finding; a text is what they say instead of a value.
VALUES = {
    "pai-a": {"clustered_page_kb": 16, "clustered_block_kb": 4096, "read_buffer_kb": 256,
              "write_buffer_kb": 255, "write_buffer_kind": "fifo", "prefetch": False},
    "pai-b": {"clustered_page_kb": 128, "clustered_block_kb": 16384, "read_buffer_kb": 0,
              "write_buffer_kb": 128, "write_buffer_kind": "fifo", "prefetch": False},
    "pai-c": {"clustered_page_kb": 4, "clustered_block_kb": 5120, "read_buffer_kb": 3072,
              "write_buffer_kb": 112, "write_buffer_kind": "not clear", "prefetch": False},
    "pai-d": {"clustered_page_kb": 128, "clustered_block_kb": 16384, "read_buffer_kb": 64,
              "write_buffer_kb": 0, "write_buffer_kind": "none", "prefetch": False},
    "bp-transcend": {"erase_block_kb": 1024, "stride_boundary": "offset",
                     "stride_peaks_kb": 1024, "stride_level_kb": 1024},
    "bp-samsung": {"erase_block_kb": 1024, "write_buffer_kind": "significant internal cache"},
    "pass-ssd1": {"region_mb": 4096, "region_depth": 8},
    "piq": {"units": 64, "channels": 8, "allocation": "cwdp", "flash_page_kb": 4}}
# The time of a probing grows with the drive's size, and these do not need their paper's.
KEYS = {"bp-transcend": {"capacity_mb": 4096}, "bp-samsung": {"capacity_mb": 4096},
        "piq": {"capacity_mb": 8192}}


def drives() -> list[Drive]:
    """Return the papers' drives."""
    return [Drive(name, name, KEYS.get(name, {})) for name in VALUES]


def text(value) -> str:
    """Return a value as the table shows it."""
    if value is None:
        return "cannot tell"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def row(name: str, found: dict[str, dict], verdicts: dict[str, str]) -> list[str]:
    """Return the row of the table for a drive: what the paper says, and what the probe says
    otherwise; with the verdict by the keys of the preset, if that is not "right"."""
    paper, probe = VALUES[name], []
    for finding, value in paper.items():
        answer = found.get(finding, {"value": None})["value"]
        # A point on a curve has no verdict.
        verdict = verdicts.get(finding, "right")
        if answer != value or verdict != "right":
            verdict = "" if verdict in ("right", text(answer)) else f" ({verdict})"
            probe.append(f"{finding} {text(answer)}{verdict}")
    return [name, ", ".join(f"{finding} {text(value)}" for finding, value in paper.items()),
            ", ".join(probe) or "the same"]
