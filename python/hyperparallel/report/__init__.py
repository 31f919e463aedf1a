# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a simulated or a measured step looks like: a page, a Perfetto trace, a summary in the terminal.

Everything here reads timelines (:mod:`hyperparallel.simulator.timeline`) and nothing else, so that a prediction and a
measurement are shown by the same code, alone or side by side. ``hp report`` is the command line of it.
"""

from __future__ import annotations

from hyperparallel.report.measured import is_trace, measured_timeline
from hyperparallel.report.page import page
from hyperparallel.report.perfetto import perfetto_events, write_perfetto
from hyperparallel.report.summary import Summary, summarise
from hyperparallel.report.terminal import print_comparison, print_summary

__all__ = [
    "Summary",
    "is_trace",
    "measured_timeline",
    "page",
    "perfetto_events",
    "print_comparison",
    "print_summary",
    "summarise",
    "write_perfetto",
]
