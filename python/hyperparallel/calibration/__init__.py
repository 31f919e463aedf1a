# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures this machine through the compiler and the runtime, into a machine description.

The description is what the cost model and the simulator decide by, so that what they say holds for the machine at hand.

>>> from hyperparallel.calibration import calibrate, calibration_text
>>> print(calibration_text(calibrate(quick=True)))  # doctest: +SKIP
"""

from hyperparallel.calibration.measurement import Calibration, Progress, calibrate
from hyperparallel.calibration.report import calibration_text

__all__ = ["Calibration", "Progress", "calibrate", "calibration_text"]
