# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Discrete-event simulation: of scheduled tasks, of recorded steps, and of compiled programs.

Example:
    >>> from hyperparallel import simulator
    >>> copies = [simulator.Task(f"die{i}", 1.5e-6, 1e9, 98e9, ("host",)) for i in range(16)]
    >>> round(simulator.simulate(copies, segments={"host": 368e9}).seconds, 4)  # 16 GB through one port
    0.0435
"""

from __future__ import annotations

from hyperparallel.simulator.errors import SimulationError
from hyperparallel.simulator.program import simulate_file, simulate_program
from hyperparallel.simulator.tasks import Simulation, Task, simulate
from hyperparallel.simulator.timeline import (
    CollectiveUse,
    Exposed,
    Group,
    LinkKind,
    LinkUse,
    Stream,
    StreamKind,
    TaskSpan,
    TensorUse,
    TierUse,
    Timeline,
    TimelineKind,
    read_timeline,
)
from hyperparallel.simulator.trace_import import import_trace
from hyperparallel.simulator.traces import Operation, Trace, read_trace

__all__ = [
    "CollectiveUse",
    "Exposed",
    "Group",
    "LinkKind",
    "LinkUse",
    "Operation",
    "Simulation",
    "SimulationError",
    "Stream",
    "StreamKind",
    "Task",
    "TaskSpan",
    "TensorUse",
    "TierUse",
    "Timeline",
    "TimelineKind",
    "Trace",
    "import_trace",
    "read_timeline",
    "read_trace",
    "simulate",
    "simulate_file",
    "simulate_program",
]
