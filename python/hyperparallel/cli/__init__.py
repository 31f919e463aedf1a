# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line: ``hp``. ``main`` is its entry; what a command does lives in the library, not here."""
