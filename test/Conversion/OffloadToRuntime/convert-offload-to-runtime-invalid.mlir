// What the runtime cannot copy is refused.
// RUN: hp-opt %s --split-input-file --hp-convert-offload-to-runtime --verify-diagnostics

func.func @dynamic(%w: tensor<?xf32, #offload.tier<pool>>) -> tensor<?xf32> {
  // expected-error @below {{expected a tensor of static shape but got 'tensor<?xf32>'}}
  %f = offload.prefetch %w : tensor<?xf32, #offload.tier<pool>> -> <tensor<?xf32>>
  %d = offload.wait %f : <tensor<?xf32>>
  return %d : tensor<?xf32>
}

// -----

func.func @element(%w: tensor<4xi7, #offload.tier<pool>>) -> tensor<4xi7> {
  // expected-error @below {{expected elements that the runtime has (i1, i8, i16, i32, i64, f16, bf16, f32, f64) but got 'i7'}}
  %f = offload.prefetch %w : tensor<4xi7, #offload.tier<pool>> -> <tensor<4xi7>>
  %d = offload.wait %f : <tensor<4xi7>>
  return %d : tensor<4xi7>
}

// -----

func.func @elsewhere(%w: tensor<4xf32, #offload.tier<pool>>, %c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected the copy to be waited for in the block where it starts}}
  %f = offload.prefetch %w : tensor<4xf32, #offload.tier<pool>> -> <tensor<4xf32>>
  %r = scf.if %c -> tensor<4xf32> {
    // expected-note @below {{its future is used here}}
    %d = offload.wait %f : <tensor<4xf32>>
    scf.yield %d : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

func.func @scattered(%w: tensor<8x4xf32, #offload.tier<pool>>) -> tensor<8x2xf32> {
  %p = tensor.extract_slice %w[0, 0] [8, 2] [1, 1] : tensor<8x4xf32, #offload.tier<pool>> to tensor<8x2xf32, #offload.tier<pool>>
  // expected-error @below {{expected a contiguous part of a tensor to copy but got a slice that is not}}
  %f = offload.prefetch %p : tensor<8x2xf32, #offload.tier<pool>> -> <tensor<8x2xf32>>
  %d = offload.wait %f : <tensor<8x2xf32>>
  return %d : tensor<8x2xf32>
}
