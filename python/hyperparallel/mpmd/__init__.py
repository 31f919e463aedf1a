# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of several device groups: splitting a program, and compiling what each group runs."""
