// A contraction whose operands were not packed is refused.
// RUN: hp-opt %s --convert-contractions-to-runtime --verify-diagnostics

func.func @strided(%a: memref<4x8xf32, strided<[32, 2]>>, %b: memref<8x6xf32>, %c: memref<4x6xf32>) {
  // expected-error @below {{expected operands with strides that fit a matmul but operand #0 is 'memref<4x8xf32, strided<[32, 2]>>'}}
  linalg.matmul ins(%a, %b : memref<4x8xf32, strided<[32, 2]>>, memref<8x6xf32>) outs(%c : memref<4x6xf32>)
  return
}
