# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that are annotated by hand, op by op, so that partitioning is tested without what comes before it.

``S(a.b, _, c)`` in a text is a sharding on @mesh: dimension 0 over a then b, dimension 1 whole, dimension 2 over c;
``S(_, a; sum b)`` is partial over b.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hyperparallel.testing import Padding, ShardedRun, run_sharded, run_unsharded

Array = np.ndarray[Any, Any]


def _axes(text: str) -> str:
    names = [name for name in text.strip().split(".") if name not in ("", "_")]
    return "{" + ", ".join(re.sub(r"^(\w+)", r'"\1"', name) for name in names) + "}"


def _sharding(match: re.Match[str]) -> str:
    dims, _, partial = match[1].partition(";")
    listed = [_axes(dim) for dim in dims.split(",")] if dims.strip() else []
    text = f"@mesh, [{', '.join(listed)}]"
    if partial:
        kind, axes = partial.split()
        text += f", partial=<{kind} {_axes(axes)}>"
    return f"#hypershard.sharding<{text}>"


def expand(text: str) -> str:
    """Spells out ``S(...)``, and the attribute's name where it stands alone in braces."""
    text = re.sub(r"({|(?<!\)),)(\s*)S\(", r"\1\2hypershard.sharding = S(", text)
    return re.sub(r"S\(([^()]*(?:\(\d+\)[^()]*)*)\)", _sharding, text)


def numbers(shape: Sequence[int], dtype: str = "f4", *, seed: int = 0) -> Array:
    """Values that are all different and of both signs."""
    count = int(np.prod(shape))
    order = np.random.default_rng(seed + count).permutation(count)
    if np.dtype(dtype).kind == "f":
        return ((order - count / 2 + 0.25) / max(count, 1) * 4).astype(dtype).reshape(shape)
    return (order - count // 2).astype(dtype).reshape(shape)


def check(
    text: str,
    inputs: Sequence[Array],
    mesh: Mapping[str, int],
    *,
    passes: Sequence[str] = ("hypershard-partition-program",),
    collectives: Mapping[str, int] | None = None,
    exact: bool = False,
    **options: Any,
) -> ShardedRun:
    """Runs a program split and unsplit, whatever stands in the padding, and compares every element."""
    text = expand(text)
    wanted = run_unsharded(text if not mesh or "hypershard.mesh" in text else _with_mesh(text, mesh), inputs)
    run: ShardedRun | None = None
    for padding in Padding:
        run = run_sharded(_with_mesh(text, mesh), inputs, passes=passes, padding=padding, **options)
        for index, (whole, result) in enumerate(zip(wanted, run.results, strict=True)):
            assert whole.shape == result.shape
            assert whole.dtype == result.dtype
            if exact:
                assert whole.tobytes() == result.tobytes(), (index, whole, result)
            else:
                np.testing.assert_allclose(
                    result, whole, rtol=2e-5, atol=2e-5, err_msg=f"result {index}\n{run.program}"
                )
        if collectives is not None:
            assert run.collectives == dict(collectives), run.program
        assert "hypershard.sharding =" not in run.program
    assert run is not None
    return run


def _with_mesh(text: str, mesh: Mapping[str, int]) -> str:
    axes = ", ".join(f'"{name}"={size}' for name, size in mesh.items())
    return f"hypershard.mesh @mesh = <[{axes}]>\n{text}" if "hypershard.mesh" not in text else text
