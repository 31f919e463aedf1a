# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp simulate`` and ``hp import-trace``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from hyperparallel.errors import CompilationError


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CompilationError(f"cannot write {path}: {error.strerror or error}") from None


def import_trace_command(arguments: argparse.Namespace) -> int:
    """``hp import-trace``."""
    from hyperparallel.simulator import import_trace, read_trace

    trace = read_trace(arguments.trace)
    _write(arguments.output, str(import_trace(trace)))
    if arguments.json:
        print(
            json.dumps(
                {
                    "trace": trace.name,
                    "file": str(arguments.output),
                    "operations": len(trace.operations),
                    "tensors": len(trace.tensors),
                    "persistent": sum(trace.persistent),
                    "compute_seconds": trace.compute_seconds,
                    "largest_operation_bytes": trace.largest_operation_bytes,
                },
                indent=1,
            )
        )
    else:
        print(arguments.output)
    return 0
