# SPDX-License-Identifier: GPL-2.0
"""Figures of a candidate in a report of advise (advice/report.py)."""


def summed(found: dict, way: str) -> dict[str, float]:
    """Return a candidate's figures of all jobs of a direction: the MB/s, the mean latency and the
    longest p99."""
    parts = [job[way] for job in found["jobs"] if way in job]
    ios = sum(part["iops"] for part in parts)
    return {"mbps": sum(part["mbps"] for part in parts),
            "mean_ms": sum(part["mean_ms"] * part["iops"] for part in parts) / ios,
            "p99_ms": max(part["p99_ms"] for part in parts)} if ios else {}
