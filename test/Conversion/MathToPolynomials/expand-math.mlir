// Elementary functions of f32 become arithmetic without branches or calls; f64 stays with the C library.
// RUN: hp-opt %s --hp-expand-math | FileCheck %s

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
