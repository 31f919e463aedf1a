# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The structure tests share what they know of the source tree."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # for source_tree
