# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How wide the accesses of kernels are, as PTX says it."""

from __future__ import annotations

from hyperparallel.cli.kernels import kernel_summary
from hyperparallel.ptxas import read_accesses

PTX = """
.visible .entry first(
	.param .u64 .ptr .align 16 first_param_0
)
{
	ld.param.b64 	%rd1, [first_param_0];
	ld.global.v4.b32 	{%r1, %r2, %r3, %r4}, [%rd1];
	ld.global.nc.b16 	%rs1, [%rd1+16];
	ld.global.nc.v2.b64 	{%rd2, %rd3}, [%rd1+32];
	ld.shared.b32 	%r5, [%r6];
	st.global.v4.b32 	[%rd1], {%r1, %r2, %r3, %r4};
	@%p1 st.global.b8 	[%rd1+64], %rs1;
}
.visible .entry second()
{
	ret;
}
"""


def test_accesses_by_width() -> None:
    assert read_accesses(PTX) == {
        "first": {"loads": {2: 1, 16: 2}, "stores": {1: 1, 16: 1}},
        "second": {"loads": {}, "stores": {}},
    }


def test_table_of_kernels() -> None:
    kernel = {
        **{"name": "first", "architecture": "sm_90", "registers": 22, "shared_bytes": 128},
        **{"spill_stores": 0, "spill_loads": 0, "loads": {"2": 1, "16": 2}, "stores": {}},
    }
    coverage = dict.fromkeys(("kernels", "launches", "library_calls", "copies", "host_fallbacks"), 1)
    *_, row = kernel_summary("main", {"coverage": coverage, "kernels": [kernel, {**kernel, "architecture": "sm_100"}]})
    assert row.split() == ["first", "22", "128", "16x2", "2", "-"]
