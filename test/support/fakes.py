# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fakes of vendors' libraries (``test/Runtime/fakes``), which back ends open where a variable names them."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).resolve().parents[2] / "build" / "test" / "Runtime" / "fakes"
_LIBRARIES = {
    "cuda": {"HP_LIBCUDA": "cuda", "HP_LIBCUBLASLT": "cublaslt", "HP_LIBNCCL": "nccl"},
    "ascend": {"HP_LIBASCENDCL": "ascendcl", "HP_LIBOPAPI": "opapi", "HP_LIBHCCL": "hccl"},
}


def fake_library(name: str) -> Path:
    """The file of one fake, such as ``cublaslt``.

    Raises:
        FileNotFoundError: It is not built. Every build makes all of them, so a test does not go without.
    """
    path = _FOLDER / f"libhp_fake_{name}.so"
    if not path.exists():
        raise FileNotFoundError(f"{path} is not built; run `make build`")
    return path


def fake_libraries(target: str) -> dict[str, str]:
    """The fakes that a back end (``cuda`` or ``ascend``) needs, by the variables that name them.

    Raises:
        FileNotFoundError: One is not built.
    """
    return {variable: str(fake_library(name)) for variable, name in _LIBRARIES[target].items()}


__all__ = ["fake_libraries", "fake_library"]
