// An operator is called where a fragment would save nothing; the reasons are counted.
// RUN: hp-opt %s --hp-choose-operators | FileCheck %s
// RUN: hp-opt %s --hp-choose-operators=operators=always | FileCheck %s --check-prefix=ALWAYS
// RUN: hp-opt %s --hp-choose-operators=operators=never | FileCheck %s --check-prefix=NEVER

// CHECK: hp.choices = {
// CHECK-SAME: "rms_norm: fragment, shares launches and trips to memory with other ops" = 3 : i64
// CHECK-SAME: "rms_norm: operator, no more launches and trips to memory than a fragment" = 1 : i64
// ALWAYS: hp.choices = {{.*}}"rms_norm: operator, as was asked for" = 4 : i64
// NEVER: hp.choices = {"rms_norm: fragment, as was asked for" = 4 : i64}
#map = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// The rows' reciprocals get a buffer, though nobody wants them. The copy to the result goes.
// CHECK-LABEL: func.func @alone(
// CHECK-SAME: %[[X:.*]]: memref<16x64xf32>, %[[W:.*]]: memref<64xf32>, %[[Y:.*]]: memref<16x64xf32>)
// CHECK-NEXT: %[[ROWS:.*]] = memref.alloc() {{.*}} : memref<16x1xf32>
// CHECK-NEXT: call @library_rms_norm(%[[X]], %[[W]], %[[Y]], %[[ROWS]])
// CHECK-NEXT: return
// NEVER-LABEL: func.func @alone(
// NEVER-NOT: call
// NEVER: math.rsqrt
func.func @alone(%x: memref<16x64xf32>, %w: memref<64xf32>, %out: memref<16x64xf32>) {
  %y = memref.alloc() : memref<16x64xf32>
  call @operator_rms_norm(%x, %w, %y) : (memref<16x64xf32>, memref<64xf32>, memref<16x64xf32>) -> ()
  linalg.copy ins(%y : memref<16x64xf32>) outs(%out : memref<16x64xf32>)
  return
}

// What comes after it would be a launch of its own, and read what was written.
// CHECK-LABEL: func.func @with_a_neighbour(
// CHECK-NOT: call
// CHECK: math.rsqrt
// CHECK: math.tanh
// ALWAYS-LABEL: func.func @with_a_neighbour(
// ALWAYS: call @library_rms_norm(
// ALWAYS: call @library_tanh
func.func @with_a_neighbour(%x: memref<16x64xf32>, %w: memref<64xf32>, %out: memref<16x64xf32>) {
  %y = memref.alloc() : memref<16x64xf32>
  call @operator_rms_norm(%x, %w, %y) : (memref<16x64xf32>, memref<64xf32>, memref<16x64xf32>) -> ()
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%y : memref<16x64xf32>) outs(%out : memref<16x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.tanh %a : f32
    linalg.yield %r : f32
  }
  return
}

// Two that would share a fragment are decided on before the ops of one end.
// CHECK-LABEL: func.func @one_after_the_other(
// CHECK-NOT: call
// CHECK-COUNT-2: math.rsqrt
// ALWAYS-LABEL: func.func @one_after_the_other(
// ALWAYS-SAME: %[[X:.*]]: memref<16x64xf32>, %[[W:.*]]: memref<64xf32>, %[[OUT:.*]]: memref<16x64xf32>)
// ALWAYS: call @library_rms_norm(%[[X]], %[[W]], %[[Y:.*]], %{{.*}})
// ALWAYS: call @library_rms_norm(%[[Y]], %[[W]], %[[OUT]], %{{.*}})
func.func @one_after_the_other(%x: memref<16x64xf32>, %w: memref<64xf32>, %out: memref<16x64xf32>) {
  %y = memref.alloc() : memref<16x64xf32>
  call @operator_rms_norm(%x, %w, %y) : (memref<16x64xf32>, memref<64xf32>, memref<16x64xf32>) -> ()
  call @operator_rms_norm(%y, %w, %out) : (memref<16x64xf32>, memref<64xf32>, memref<16x64xf32>) -> ()
  return
}

// CHECK-NOT: @operator_rms_norm
// CHECK: func.func private @library_rms_norm(memref<16x64xf32> {stream.access = "read"}, memref<64xf32> {stream.access = "read"}, memref<16x64xf32> {stream.access = "write"}, memref<16x1xf32> {stream.access = "write"})
// CHECK-SAME: hp.library = "rms_norm"
func.func private @operator_rms_norm(%x: memref<16x64xf32>, %w: memref<64xf32>, %y: memref<16x64xf32>)
    attributes {hp.operator = "rms_norm", hp.epsilon = 1.0e-5 : f64, hp.results = array<i64: 0>} {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 64.0 : f32
  %e = arith.constant 1.0e-5 : f32
  %sum = memref.alloc() : memref<16xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<16xf32>)
  linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<16x64xf32>) outs(%sum : memref<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.mulf %a, %a : f32
    %r = arith.addf %s, %o : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#map, #row, #column, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum, %w : memref<16x64xf32>, memref<16xf32>, memref<64xf32>) outs(%y : memref<16x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %m = arith.divf %b, %n : f32
    %s = arith.addf %m, %e : f32
    %q = math.rsqrt %s : f32
    %t = arith.mulf %a, %q : f32
    %r = arith.mulf %t, %c : f32
    linalg.yield %r : f32
  }
  return
}
