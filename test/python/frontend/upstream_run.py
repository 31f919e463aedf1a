# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs an imported program with upstream MLIR alone, so that the import is judged by something that is not ours."""

from __future__ import annotations

import ctypes
import itertools
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from mlir import execution_engine, ir, passmanager, runtime

_TO_LOOPS = (
    "builtin.module(canonicalize,cse,linalg-fuse-elementwise-ops,"
    "one-shot-bufferize{bufferize-function-boundaries=1 function-boundary-type-conversion=identity-layout-map},"
    "buffer-deallocation-pipeline,convert-bufferization-to-memref,convert-linalg-to-loops)"
)
_TO_LLVM = (
    "builtin.module(expand-strided-metadata,lower-affine,convert-scf-to-cf,convert-math-to-llvm,convert-math-to-libm,"
    "convert-to-llvm,reconcile-unrealized-casts)"
)


def _widen_truth_values(text: str) -> str:
    """Keep truth values as bytes: MLIR 22 does not lower a store of ``i1``."""
    text = re.sub(
        r"%([\w#]+) = memref\.load (.*xi1\b.*|.*memref<i1\b.*)",
        r"%byte_of_\1 = memref.load \2\n%\1 = arith.trunci %byte_of_\1 : i8 to i1",
        text,
    )
    count = itertools.count()

    def store(match: re.Match[str]) -> str:
        byte = f"%stored_byte_{next(count)}"
        return f"{byte} = arith.extui {match[1]} : i1 to i8\nmemref.store {byte}, {match[2]}"

    text = re.sub(r"memref\.store (%[\w#]+), (.*xi1\b.*|.*memref<i1\b.*)", store, text)
    text = re.sub(r"dense<true> : tensor<((?:\d+x)*)i1>", r"dense<1> : tensor<\1i8>", text)
    text = re.sub(r"dense<false> : tensor<((?:\d+x)*)i1>", r"dense<0> : tensor<\1i8>", text)
    return re.sub(r"memref<((?:[\d?]+x)*)i1\b", r"memref<\1i8", text)


def run(
    text: str, arguments: list[np.ndarray[Any, Any]], results: list[tuple[tuple[int, ...], str]]
) -> list[np.ndarray[Any, Any]]:
    """Run ``@main`` of ``text``.

    Args:
        text: A module.
        arguments: One array for each argument; ``bf16`` as ``uint16``.
        results: Shape and NumPy type of each result.
    """
    with ir.Context():
        module = ir.Module.parse(text)
        for function in module.body:
            if function.attributes["sym_name"].value == "main":
                function.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
        passmanager.PassManager.parse(_TO_LOOPS).run(module.operation)
        module = ir.Module.parse(_widen_truth_values(str(module)))
        passmanager.PassManager.parse(_TO_LLVM).run(module.operation)
        libraries = Path(str(ir.__file__)).parent / "lib"
        shared = [os.fspath(libraries / f"libmlir_{name}_utils.so") for name in ("c_runner", "float16")]
        engine = execution_engine.ExecutionEngine(module, opt_level=0, shared_libs=shared)
        descriptors = [runtime.get_ranked_memref_descriptor(np.ascontiguousarray(entry)) for entry in arguments]
        fields = [
            (
                f"r{index}",
                runtime.make_nd_memref_descriptor(len(shape), np.ctypeslib.as_ctypes_type(np.dtype(kind)))
                if shape
                else runtime.make_zero_d_memref_descriptor(np.ctypeslib.as_ctypes_type(np.dtype(kind))),
            )
            for index, (shape, kind) in enumerate(results)
        ]
        returned = type("Returned", (ctypes.Structure,), {"_fields_": fields})()
        pointers = [ctypes.pointer(ctypes.pointer(entry)) for entry in (returned, *descriptors)]
        engine.invoke("main", *pointers)
        copies: list[np.ndarray[Any, Any]] = []
        for index, (shape, kind) in enumerate(results):
            descriptor = ctypes.pointer(getattr(returned, f"r{index}"))
            if shape:
                array = runtime.ranked_memref_to_numpy(descriptor)
            else:
                array = np.ctypeslib.as_array(descriptor.contents.aligned, shape=(1,))
            copies.append(np.array(array, dtype=kind).reshape(shape))
        return copies
