# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model of two residual matrix products: its program, its values, and what it computes."""

from __future__ import annotations

from typing import Any

import numpy as np

LAYER = """
  func.func private @layer(%x: tensor<6x10xf32>, %w: tensor<10x10xf32>) -> tensor<6x10xf32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<6x10xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<6x10xf32>) -> tensor<6x10xf32>
    %product = linalg.matmul ins(%x, %w : tensor<6x10xf32>, tensor<10x10xf32>) outs(%init : tensor<6x10xf32>)
      -> tensor<6x10xf32>
    %sum = linalg.add ins(%product, %x : tensor<6x10xf32>, tensor<6x10xf32>) outs(%empty : tensor<6x10xf32>)
      -> tensor<6x10xf32>
    return %sum : tensor<6x10xf32>
  }
"""
MLIR = f"""module {{{LAYER}
  func.func @main(%x: tensor<6x10xf32> {{hp.name = "x", hp.role = "input"}},
                  %w0: tensor<10x10xf32> {{hp.name = "layers.0.w", hp.role = "parameter"}},
                  %w1: tensor<10x10xf32> {{hp.name = "layers.1.w", hp.role = "parameter"}})
      -> (tensor<6x10xf32> {{hp.name = "y"}}) {{
    %0 = call @layer(%x, %w0) {{hp.path = "layers.0"}} : (tensor<6x10xf32>, tensor<10x10xf32>) -> tensor<6x10xf32>
    %1 = call @layer(%0, %w1) {{hp.path = "layers.1"}} : (tensor<6x10xf32>, tensor<10x10xf32>) -> tensor<6x10xf32>
    return %1 : tensor<6x10xf32>
  }}
}}
"""


def values() -> dict[str, Any]:
    """Values of all arguments: all different, of both signs."""
    random = np.random.default_rng(7)
    return {
        "x": random.standard_normal((6, 10)).astype(np.float32),
        "layers.0.w": random.standard_normal((10, 10)).astype(np.float32),
        "layers.1.w": random.standard_normal((10, 10)).astype(np.float32),
    }


def expected() -> Any:
    """What the model computes."""
    given = {name: value.astype(np.float64) for name, value in values().items()}
    y = given["x"]
    for layer in (0, 1):
        y = y @ given[f"layers.{layer}.w"] + y
    return y
