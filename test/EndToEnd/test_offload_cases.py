# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs that break other systems' offloading, planned within a limit and run within it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mlir")

import itertools

from mlir import ir

from hyperparallel import _hyperparallel
from hyperparallel.errors import CompilationError
from hyperparallel.memory import MemoryPlan, fit_memory
from hyperparallel.pipeline import make_context, parse_program
from hyperparallel.runtime import DeviceStatistics, Runtime, Tier
from hyperparallel.testing.annotated import numbers

Array = np.ndarray[Any, Any]
MACHINE = 'supernode.machine = #supernode.machine<preset = "cpu-supernode">'


def plan(functions: str, capacity: int) -> MemoryPlan:
    module = parse_program(f"module attributes {{{MACHINE}}} {{ {functions} }}", "case", make_context())
    return fit_memory(module, capacity, "case")


def run(
    planned: MemoryPlan, inputs: Sequence[Array], folder: Path, is_bound: bool = False
) -> tuple[list[Array], DeviceStatistics]:
    """Run what was planned with its limit; the peak is the one that was planned (or less, where what is
    freed is known only then)."""
    path = folder / "program.so"
    _hyperparallel.compile_program(planned.module, str(path), "", 0)
    entry: Mapping[str, Any] = json.loads(path.with_suffix(".json").read_text())["entries"][0]
    outputs = [np.full(result["shape"], np.nan, np.float32) for result in entry["results"]]
    tiers = [Tier.HOST if "tier" in argument else Tier.DEVICE for argument in entry["arguments"]]
    with Runtime(tier_limits={Tier.DEVICE: planned.capacity}) as runtime:
        statistics = runtime.load(path).run(entry["symbol"], [list(inputs)], [outputs], argument_tiers=tiers)
    device = statistics.devices[0]
    assert device.peak_bytes[Tier.DEVICE] <= planned.peak_bytes <= planned.capacity
    assert device.peak_bytes[Tier.DEVICE] == planned.peak_bytes or is_bound
    assert statistics.leaked_bytes == 0
    return outputs, device


def kernel(name: str, shape: str, operands: str, body: str) -> str:
    """One elementwise kernel that is fused with nothing: each is a function of its own."""
    arguments = ", ".join(f"%{letter}: tensor<{shape}xf32>" for letter in operands)
    kinds = ", ".join([f"tensor<{shape}xf32>"] * len(operands))
    dims = ", ".join(f"d{i}" for i in range(shape.count("x") + 1))
    maps = ", ".join([f"affine_map<({dims}) -> ({dims})>"] * (len(operands) + 1))
    loops = ", ".join(['"parallel"'] * (shape.count("x") + 1))
    values = ", ".join(f"%{letter}" for letter in operands)
    scalars = ", ".join(f"%{letter}_: f32" for letter in operands)
    return f"""
      func.func private @{name}({arguments}) -> tensor<{shape}xf32> {{
        %e = tensor.empty() : tensor<{shape}xf32>
        %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{loops}]}}
            ins({values} : {kinds}) outs(%e : tensor<{shape}xf32>) {{
        ^bb0({scalars}, %o: f32):
          {body}
          linalg.yield %v : f32
        }} -> tensor<{shape}xf32>
        return %r : tensor<{shape}xf32>
      }}"""


BIG = "200x300x50"
ADD = kernel("add", BIG, "ab", "%v = arith.addf %a_, %b_ : f32")


def chain(calls: str, result: str) -> str:
    lines: list[str] = []
    for call in calls.split(";"):
        made, _, used = call.partition("=")
        a, b = used.split("+")
        lines.append(
            f"%{made.strip()} = call @add(%{a.strip()}, %{b.strip()}) : "
            f"(tensor<{BIG}xf32>, tensor<{BIG}xf32>) -> tensor<{BIG}xf32>"
        )
    body = "\n".join(lines)
    return f"{ADD} func.func @main(%x: tensor<{BIG}xf32>) -> tensor<{BIG}xf32> {{ {body} return %{result} : tensor<{BIG}xf32> }}"


@pytest.mark.parametrize("megabytes", [200, 84, 72, 60])
def test_case_18_a_chain_with_a_branch_in_it(megabytes: int, tmp_path: Path) -> None:
    """12 MB each; 3 of them are in each op, and 2 belong to the caller: the closed form at every capacity."""
    text = chain("a=x+x; b=a+x; c=b+b; d=a+c; e=d+c; f=e+b", "f")
    values = numbers([200, 300, 50])
    planned = plan(text, megabytes * 1_000_000)
    (result,), device = run(planned, [values], tmp_path)
    a = values + values
    b = a + values
    c = b + b
    np.testing.assert_array_equal(result, ((a + c) + c) + b)
    assert (device.stores > 0) == (planned.capacity < planned.unplanned_peak_bytes)


def test_case_13_one_stored_value_and_several_users(tmp_path: Path) -> None:
    """What comes back stays while it fits, past ops that do not use it: stored once, fetched once."""
    text = chain("a=x+x; b=x+x; c=b+x; d=c+b; e=d+a; f=e+x; g=f+a; h=g+x; i=h+a", "i")
    values = numbers([200, 300, 50])
    planned = plan(text, 60_000_000)
    (result,), device = run(planned, [values], tmp_path)
    a = values + values
    d = (a + values) + a
    np.testing.assert_array_equal(result, ((((d + a) + values) + a) + values) + a)
    assert device.stores == device.prefetches == 1
    assert not any(move["recomputed"] for move in planned.figures["moves"])


def test_case_22_a_program_that_fits(tmp_path: Path) -> None:
    planned = plan(chain("a=x+x; b=a+x", "b"), 10**9)
    (_,), device = run(planned, [numbers([200, 300, 50])], tmp_path)
    assert device.stores == device.prefetches == 0
    assert "nothing moves" in planned.remarks[0]


def test_case_24_less_than_an_op_needs() -> None:
    with pytest.raises(CompilationError, match="does not fit into 20000000 bytes") as caught:
        plan(chain("a=x+x; b=a+x", "b"), 20_000_000)
    assert "is the smallest capacity that can work" in str(caught.value)


WEIGHTS = """
  func.func private @layer(%x: tensor<8x512xf32>, %w: tensor<512x512xf32>) -> tensor<8x512xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8x512xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x512xf32>) -> tensor<8x512xf32>
    %r = linalg.matmul ins(%x, %w : tensor<8x512xf32>, tensor<512x512xf32>) outs(%z : tensor<8x512xf32>) -> tensor<8x512xf32>
    return %r : tensor<8x512xf32>
  }
"""


def layers(order: Sequence[int], count: int) -> str:
    weights = ", ".join(f'%w{i}: tensor<512x512xf32> {{hp.name = "w{i}", hp.role = "parameter"}}' for i in range(count))
    lines = [
        f"%y{step + 1} = call @layer(%y{step}, %w{weight}) : (tensor<8x512xf32>, tensor<512x512xf32>) -> tensor<8x512xf32>"
        for step, weight in enumerate(order)
    ]
    body = "\n".join(lines)
    return (
        f'{WEIGHTS} func.func @main(%y0: tensor<8x512xf32> {{hp.name = "x", hp.role = "input"}}, {weights}) '
        f"-> tensor<8x512xf32> {{ {body} return %y{len(order)} : tensor<8x512xf32> }}"
    )


@pytest.mark.parametrize(
    ("order", "count"),
    [([0, 1, 2], 3), ([0, 1, 2, 0, 1, 2], 3), ([0, 1, 2, 3, 0], 4), ([0, 1, 2, 3, 3, 2, 1, 0], 4)],
    ids=str,
)
@pytest.mark.parametrize("slots", [1, 2])
def test_cases_6_and_10_streamed_weights(order: list[int], count: int, slots: int, tmp_path: Path) -> None:
    """No slot is overwritten before its last use; a weight that is used twice has one copy below."""
    weight = 512 * 512 * 4
    capacity = slots * weight + weight // 4
    inputs = [numbers([8, 512]), *(numbers([512, 512], seed=i + 1) / 512 for i in range(count))]
    free, _ = run(plan(layers(order, count), 10**9), inputs, tmp_path)
    (result,), device = run(plan(layers(order, count), capacity), inputs, tmp_path)
    np.testing.assert_array_equal(result, free[0])
    assert device.peak_bytes[Tier.HOST] <= count * weight
    assert device.stores == 0
    if slots == 2:
        # At most one fetch for each use; what is used twice in a row is fetched once.
        assert device.prefetches <= len(order) - sum(a == b for a, b in itertools.pairwise(order))


def check_or_refuse(text: str, inputs: Sequence[Array], wanted: Array, folder: Path) -> None:
    """Right with all the memory that it may need; with less, right or refused, never wrong."""
    free = plan(text, 10**9)
    ran = 0
    for part in (1.0, 0.9, 0.8, 0.7, 0.6):
        try:
            planned = plan(text, int(free.peak_bytes * part))
        except CompilationError:
            continue
        (result,), _ = run(planned, inputs, folder, is_bound=True)
        np.testing.assert_array_equal(result, wanted)
        ran += 1
    assert ran > 0


def test_case_17_branches_with_a_value_alive_across_both(tmp_path: Path) -> None:
    kind = "tensor<64x256xf32>"
    text = f"""
      {kernel("twice", "64x256", "a", "%v = arith.addf %a_, %a_ : f32")}
      {kernel("both", "64x256", "ab", "%v = arith.subf %a_, %b_ : f32")}
      func.func @main(%x: {kind}, %flag: tensor<i1>, %w: {kind} {{hp.name = "w", hp.role = "parameter"}},
                      %u: {kind} {{hp.name = "u", hp.role = "parameter"}}) -> {kind} {{
        %c = tensor.extract %flag[] : tensor<i1>
        %first = scf.if %c -> {kind} {{
          %a = func.call @twice(%x) : ({kind}) -> {kind}
          scf.yield %a : {kind}
        }} else {{
          %a = func.call @both(%x, %w) : ({kind}, {kind}) -> {kind}
          scf.yield %a : {kind}
        }}
        %second = scf.if %c -> {kind} {{
          %b = func.call @both(%w, %x) : ({kind}, {kind}) -> {kind}
          scf.yield %b : {kind}
        }} else {{
          %b = func.call @twice(%w) : ({kind}) -> {kind}
          scf.yield %b : {kind}
        }}
        %s = call @both(%first, %second) : ({kind}, {kind}) -> {kind}
        %r = call @both(%s, %u) : ({kind}, {kind}) -> {kind}
        return %r : {kind}
      }}"""
    x, w, u = numbers([64, 256]), numbers([64, 256], seed=1), numbers([64, 256], seed=2)
    for flag in (True, False):
        first, second = (x + x, w - x) if flag else (x - w, w + w)
        check_or_refuse(text, [x, np.array(flag), w, u], (first - second) - u, tmp_path)


SAVED, WIDE = "tensor<64x256xf32>", "tensor<256x256xf32>"
#: What is saved before these and wanted after them is not used by any of them.
BETWEEN = f"""
        %b = call @wide(%y, %y) : ({WIDE}, {WIDE}) -> {WIDE}
        %c = call @wide(%b, %y) : ({WIDE}, {WIDE}) -> {WIDE}
        %d = call @wide(%c, %b) : ({WIDE}, {WIDE}) -> {WIDE}"""
WIDE_KERNEL = kernel("wide", "256x256", "ab", "%v = arith.subf %a_, %b_ : f32")


def test_cases_7_and_8_overlapping_views_of_one_storage(tmp_path: Path) -> None:
    """The base is dead, two views of it that overlap are saved: its storage moves once, and they are views of it again."""
    part = "tensor<40x256xf32>"
    text = f"""
      {WIDE_KERNEL}
      {kernel("twice", "64x256", "a", "%v = arith.addf %a_, %a_ : f32")}
      func.func private @pair(%x: {SAVED}) -> ({SAVED}, {SAVED}) {{
        %a = func.call @twice(%x) : ({SAVED}) -> {SAVED}
        %p = func.call @twice(%a) : ({SAVED}) -> {SAVED}
        return %a, %p : {SAVED}, {SAVED}
      }}
      {kernel("mixed", "40x256", "ab", "%v = arith.subf %a_, %b_ : f32")}
      func.func @main(%x: {SAVED}, %y: {WIDE}) -> ({part}, {WIDE}, {SAVED}) {{
        %a, %p = call @pair(%x) : ({SAVED}) -> ({SAVED}, {SAVED})
        %first = tensor.extract_slice %a[0, 0] [40, 256] [1, 1] : {SAVED} to {part}
        %second = tensor.extract_slice %a[20, 0] [40, 256] [1, 1] : {SAVED} to {part}
        {BETWEEN}
        %r = call @mixed(%first, %second) : ({part}, {part}) -> {part}
        return %r, %d, %p : {part}, {WIDE}, {SAVED}
      }}"""
    x, y = numbers([64, 256]), numbers([256, 256], seed=1)
    free = plan(text, 10**9)
    planned = plan(text, free.peak_bytes - 2**15)
    results, device = run(planned, [x, y], tmp_path)
    np.testing.assert_array_equal(results[0], (x + x)[:40] - (x + x)[20:60])
    np.testing.assert_array_equal(results[1], ((y - y) - y) - (y - y))
    assert (device.stores, device.prefetches, device.stored_bytes) == (1, 1, x.nbytes)
    # Neither view moves by itself, nor is one computed again.
    assert len(planned.figures["moves"]) == 1


def test_case_9_a_value_and_its_transpose(tmp_path: Path) -> None:
    """Both are saved, both come back, and neither is taken for the other."""
    flipped = "tensor<256x64xf32>"
    text = f"""
      {WIDE_KERNEL}
      {kernel("twice", "64x256", "a", "%v = arith.addf %a_, %a_ : f32")}
      func.func private @flip(%x: {SAVED}) -> {flipped} {{
        %e = tensor.empty() : {flipped}
        %r = linalg.transpose ins(%x : {SAVED}) outs(%e : {flipped}) permutation = [1, 0]
        return %r : {flipped}
      }}
      func.func private @mixed(%x: {SAVED}, %t: {flipped}) -> {SAVED} {{
        %e = tensor.empty() : {SAVED}
        %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
                             iterator_types = ["parallel", "parallel"]}}
            ins(%x, %t : {SAVED}, {flipped}) outs(%e : {SAVED}) {{
        ^bb0(%l: f32, %m: f32, %o: f32):
          %s = arith.mulf %l, %m : f32
          linalg.yield %s : f32
        }} -> {SAVED}
        return %r : {SAVED}
      }}
      func.func @main(%x: {SAVED}, %y: {WIDE}) -> ({SAVED}, {WIDE}) {{
        %a = call @twice(%x) : ({SAVED}) -> {SAVED}
        %t = call @flip(%a) : ({SAVED}) -> {flipped}
        {BETWEEN}
        %r = call @mixed(%a, %t) : ({SAVED}, {flipped}) -> {SAVED}
        return %r, %d : {SAVED}, {WIDE}
      }}"""
    x, y = numbers([64, 256]), numbers([256, 256], seed=1)
    free = plan(text, 10**9)
    planned = plan(text, free.peak_bytes - 3 * 2**15)
    results, device = run(planned, [x, y], tmp_path)
    np.testing.assert_array_equal(results[0], (x + x) * (x + x))
    # Each leaves, or is made again.
    again = sum(move["recomputed"] for move in planned.figures["moves"])
    assert device.stores == device.prefetches == 2 - again
    assert len(planned.figures["moves"]) == 2


def test_cases_14_and_15_loops_keep_what_they_carry(tmp_path: Path) -> None:
    """What a loop carries and what it reads stay while it runs, and the values are right."""
    kind = "tensor<64x256xf32>"
    text = f"""
      {kernel("step", "64x256", "ab", "%v = arith.subf %a_, %b_ : f32")}
      func.func @main(%x: {kind} {{hp.name = "x", hp.role = "input"}},
                      %w: {kind} {{hp.name = "w", hp.role = "parameter"}},
                      %u: {kind} {{hp.name = "u", hp.role = "parameter"}}) -> {kind} {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c3 = arith.constant 3 : index
        %a = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %x) -> ({kind}) {{
          %n = func.call @step(%v, %w) : ({kind}, {kind}) -> {kind}
          scf.yield %n : {kind}
        }}
        %r = call @step(%a, %u) : ({kind}, {kind}) -> {kind}
        return %r : {kind}
      }}"""
    x, w, u = numbers([64, 256]), numbers([64, 256], seed=1), numbers([64, 256], seed=2)
    check_or_refuse(text, [x, w, u], ((x - w) - w - w) - u, tmp_path)


def test_case_14_a_loop_back_over_what_a_loop_saved(tmp_path: Path) -> None:
    """Slice i is saved, slice n - 1 - i wanted: values leave one by one, and come back in reverse."""
    kind, stack, count = "tensor<64x256xf32>", "tensor<6x64x256xf32>", 6
    text = f"""
      {kernel("forward", "64x256", "ab", "%v = arith.subf %a_, %b_ : f32")}
      {kernel("backward", "64x256", "ab", "%v = arith.mulf %a_, %b_ : f32")}
      func.func @main(%x: {kind} {{hp.name = "x", hp.role = "input"}}, %w: {kind} {{hp.name = "w", hp.role = "input"}}) -> {kind} {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c5 = arith.constant 5 : index
        %c6 = arith.constant 6 : index
        %e = tensor.empty() : {stack}
        %r:2 = scf.for %i = %c0 to %c6 step %c1 iter_args(%v = %x, %s = %e) -> ({kind}, {stack}) {{
          %p = tensor.insert_slice %v into %s[%i, 0, 0] [1, 64, 256] [1, 1, 1] : {kind} into {stack}
          %n = func.call @forward(%v, %w) : ({kind}, {kind}) -> {kind}
          scf.yield %n, %p : {kind}, {stack}
        }}
        %g = scf.for %i = %c0 to %c6 step %c1 iter_args(%v = %r#0) -> ({kind}) {{
          %j = arith.subi %c5, %i : index
          %t = tensor.extract_slice %r#1[%j, 0, 0] [1, 64, 256] [1, 1, 1] : {stack} to {kind}
          %n = func.call @backward(%v, %t) : ({kind}, {kind}) -> {kind}
          scf.yield %n : {kind}
        }}
        return %g : {kind}
      }}"""
    x, w = numbers([64, 256]), numbers([64, 256], seed=1)
    saved = [x]
    for _ in range(count):
        saved.append(saved[-1] - w)
    wanted = saved[-1]
    for value in reversed(saved[:-1]):
        wanted = wanted * value
    size = 64 * 256 * 4
    planned = plan(text, 6 * size)
    (result,), device = run(planned, [x, w], tmp_path)
    np.testing.assert_array_equal(result, wanted)
    assert device.stores > 0
    assert planned.unplanned_peak_bytes > 8 * size


def test_case_26_an_empty_tensor_is_no_transfer(tmp_path: Path) -> None:
    """A parameter of no elements stays; the one beside it comes from below for the last op."""
    kind, empty, wide = "tensor<64x64xf32>", "tensor<0x4xf32>", WIDE
    text = f"""
      {kernel("twice", "64x64", "a", "%v = arith.addf %a_, %a_ : f32")}
      {WIDE_KERNEL}
      {kernel("nothing", "0x4", "a", "%v = arith.addf %a_, %a_ : f32")}
      func.func @main(%x: {wide} {{hp.name = "x", hp.role = "input"}},
                      %w: {empty} {{hp.name = "w", hp.role = "parameter"}},
                      %v: {kind} {{hp.name = "v", hp.role = "parameter"}}) -> ({wide}, {empty}, {kind}) {{
        %t = call @wide(%x, %x) : ({wide}, {wide}) -> {wide}
        %a = call @wide(%t, %x) : ({wide}, {wide}) -> {wide}
        %b = call @nothing(%w) : ({empty}) -> {empty}
        %c = call @twice(%v) : ({kind}) -> {kind}
        return %a, %b, %c : {wide}, {empty}, {kind}
      }}"""
    inputs = [numbers([256, 256]), np.zeros((0, 4), np.float32), numbers([64, 64], seed=1)]
    size = inputs[2].nbytes
    free = plan(text, 10**9)
    planned = plan(text, free.peak_bytes - size)
    results, device = run(planned, inputs, tmp_path)
    np.testing.assert_array_equal(results[0], -inputs[0])
    np.testing.assert_array_equal(results[2], 2 * inputs[2])
    assert [move["tensor"] for move in planned.figures["moves"]] == ["v"]
    assert (device.prefetches, device.prefetched_bytes, device.stores) == (1, size, 0)


def test_a_plan_is_the_same_every_time() -> None:
    text = layers([0, 1, 2, 3, 3, 2, 1, 0], 4)
    first, second = (str(plan(text, 5 * 512 * 512).module) for _ in range(2))
    assert first == second
    with ir.Context():
        assert "offload.prefetch" in first


CACHE = "tensor<64x32xf32>"
ROW = "tensor<1x32xf32>"


def decode_step(count: int) -> str:
    """Each layer puts its row into its cache and sums the cache up; caches are updated in place."""
    kinds = ", ".join(f'%c{i}: {CACHE} {{hp.name = "c{i}", hp.role = "cache"}}' for i in range(count))
    results = ", ".join(f'{CACHE} {{hp.name = "c{i}", hp.updates = "c{i}"}}' for i in range(count))
    lines: list[str] = []
    for i in range(count):
        lines.append(
            f"%n{i} = tensor.insert_slice %x{i} into %c{i}[%at, 0] [1, 32] [1, 1] : {ROW} into {CACHE}\n"
            f"%x{i + 1} = call @attend(%x{i}, %n{i}) : ({ROW}, {CACHE}) -> {ROW}"
        )
    body = "\n".join(lines)
    made = ", ".join(f"%n{i}" for i in range(count))
    types = ", ".join([CACHE] * count)
    return f"""
      func.func private @attend(%x: {ROW}, %c: {CACHE}) -> {ROW} {{
        %e = tensor.empty() : {ROW}
        %r = linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> (i, j)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                             iterator_types = ["parallel", "parallel", "reduction"]}}
            ins(%x, %c : {ROW}, {CACHE}) outs(%x : {ROW}) {{
        ^bb0(%l: f32, %m: f32, %o: f32):
          %v = arith.addf %o, %m : f32
          linalg.yield %v : f32
        }} -> {ROW}
        return %r : {ROW}
      }}
      func.func @main(%x0: {ROW} {{hp.name = "x", hp.role = "input"}}, %position: tensor<1xi64> {{hp.name = "p", hp.role = "input"}}, {kinds})
          -> ({ROW}, {results}) {{
        %zero = arith.constant 0 : index
        %n = tensor.extract %position[%zero] : tensor<1xi64>
        %at = arith.index_cast %n : i64 to index
        {body}
        return %x{count}, {made} : {ROW}, {types}
      }}"""


def test_a_decode_step_with_caches_in_the_pool(tmp_path: Path) -> None:
    """Caches live below between steps, come layer by layer, and go back with the new row in them."""
    count, size = 6, 64 * 32 * 4
    caches = [numbers([64, 32], seed=i + 1) for i in range(count)]
    text = decode_step(count)
    free = plan(text, 10**9)
    planned = plan(text, 3 * size + 2048)
    assert planned.peak_bytes < 0.6 * free.peak_bytes
    wanted = [cache.copy() for cache in caches]
    own = [cache.copy() for cache in caches]
    for step in range(3):
        x = numbers([1, 32], seed=50 + step)
        position = np.array([7 + step], np.int64)
        (result,), device = run(plan(text, planned.capacity), [x, position, *own], tmp_path)
        value = x
        for cache in wanted:
            cache[7 + step] = value[0]
            value = value + cache.sum(axis=0, dtype=np.float32)
        np.testing.assert_allclose(result, value, rtol=1e-4)
        for cache, mine in zip(wanted, own, strict=True):
            np.testing.assert_allclose(mine, cache, rtol=1e-4)
        assert device.stores >= count - 3
        assert device.peak_bytes[Tier.HOST] <= count * size
