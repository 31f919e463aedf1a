// Elementary functions of f32 become arithmetic without branches or calls; f64 stays with the C library.
// RUN: hp-opt %s --hp-expand-math | FileCheck %s
// RUN: hp-opt %s --hp-expand-math=extrema | FileCheck %s --check-prefix=EXTREMA

// CHECK-LABEL: func.func @exp
func.func @exp(%x: f32) -> f32 {
  // CHECK-NOT: math.
  // CHECK: arith.shli
  // CHECK-NOT: math.
  // CHECK: return
  %y = math.exp %x : f32
  return %y : f32
}

// CHECK-LABEL: func.func @all_that_models_use
func.func @all_that_models_use(%x: f32) -> f32 {
  // CHECK-NOT: math.{{(tanh|erf|log|sin|cos|powf)}}
  // CHECK: return
  %0 = math.tanh %x : f32
  %1 = math.erf %0 : f32
  %2 = math.log %1 : f32
  %3 = math.sin %2 : f32
  %4 = math.cos %3 : f32
  %5 = math.powf %4, %x : f32
  return %5 : f32
}

// Integer powers are products: x^5 = x * (x^2)^2.
// CHECK-LABEL: func.func @integer_power
func.func @integer_power(%x: f32) -> f32 {
  // CHECK: %[[TWO:.*]] = arith.mulf %[[X:.*]], %[[X]]
  // CHECK: %[[FOUR:.*]] = arith.mulf %[[TWO]], %[[TWO]]
  // CHECK: arith.mulf %[[X]], %[[FOUR]]
  // CHECK-NOT: math.
  // CHECK: return
  %n = arith.constant 5 : i64
  %y = math.fpowi %x, %n : f32, i64
  return %y : f32
}

// CHECK-LABEL: func.func @double
func.func @double(%x: f64) -> f64 {
  // CHECK: math.exp
  %y = math.exp %x : f64
  return %y : f64
}

// Where asked for, maxima are what LLVM makes reductions of; those of types that are emulated stay.
// CHECK-LABEL: func.func @extrema
// EXTREMA-LABEL: func.func @extrema
func.func @extrema(%x: f32, %y: f32, %a: f64, %b: f64, %h: bf16) -> (f32, f64, bf16) {
  // CHECK: arith.maximumf
  // EXTREMA: llvm.intr.maximum(%{{.*}}, %{{.*}}) : (f32, f32) -> f32
  %0 = arith.maximumf %x, %y : f32
  // CHECK: arith.minimumf
  // EXTREMA: llvm.intr.minimum(%{{.*}}, %{{.*}}) : (f64, f64) -> f64
  %1 = arith.minimumf %a, %b : f64
  // EXTREMA: arith.maximumf
  %2 = arith.maximumf %h, %h : bf16
  return %0, %1, %2 : f32, f64, bf16
}
