# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Static allocation instances: how high the offsets come, against the most bytes that are live at one moment.

    python benchmarks/arena.py FILE... [--exact] [--capacity BYTES] [--json]

A file is CSV with `id,lower,upper,size`, `upper` exclusive. A name such as `A.1048576.csv` says the capacity.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from pathlib import Path
from typing import Any

from hyperparallel import offload


def read(path: Path) -> list[offload.Buffer]:
    """The buffers of a file."""
    with path.open(newline="") as file:
        return [offload.Buffer(int(row["lower"]), int(row["upper"]), int(row["size"])) for row in csv.DictReader(file)]


def measure(path: Path, capacity: int | None, exact: bool) -> dict[str, Any]:
    """One row."""
    buffers = read(path)
    named = path.name.split(".")[1:-1]
    if capacity is None and len(named) == 1 and named[0].isdigit():
        capacity = int(named[0])
    began, cpu = time.perf_counter(), time.process_time()
    arena = offload.assign_offsets(buffers, capacity=capacity, exact=exact)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    fault = offload.find_overlap(buffers, arena.offsets)
    if fault is not None:
        raise AssertionError(fault)
    return {
        "file": path.name,
        "buffers": len(buffers),
        "height": arena.height,
        "max_live": arena.max_live,
        "capacity": capacity,
        "method": arena.method,
        "seconds": seconds,
        "cpu_seconds": cpu,
    }


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="instances")
    parser.add_argument("--exact", action="store_true", help="search exactly where simple orders are not enough")
    parser.add_argument("--capacity", type=int, help="a height that is enough (default: from the name, or max live)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    rows = []
    if not arguments.json:
        print("file                  buffers       height     max live   ratio  seconds   cpu s  method")
    for path in arguments.files:
        row = measure(path, arguments.capacity, arguments.exact)
        rows.append(row)
        if not arguments.json:
            ratio = row["height"] / max(row["max_live"], 1)
            print(
                "{file:<20} {buffers:8} {height:12} {max_live:12}  {0:6.4f} {seconds:8.2f} {cpu_seconds:7.2f}  "
                "{method}".format(ratio, **row)
            )
    if arguments.json:
        print(json.dumps(rows[0] if len(rows) == 1 else rows, indent=2))


if __name__ == "__main__":
    main()
