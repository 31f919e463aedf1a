// Arguments are the caller's, every use of a fill has its own, and a contraction that adds to zero overwrites.
// RUN: hp-opt %s --hp-prepare-bufferization | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @product(
// CHECK-SAME: %{{.*}}: tensor<4x8xf32> {bufferization.writable = false}
// CHECK-SAME: %[[C:[a-z0-9]+]]: tensor<4x6xf32> {bufferization.writable = false}
// CHECK-SAME: hp.num_results = 2
func.func @product(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  // CHECK: %[[OUT:.*]] = tensor.empty() : tensor<4x6xf32>
  // CHECK-NEXT: linalg.generic
  // CHECK-SAME: outs(%[[OUT]] : tensor<4x6xf32>) attrs ={{ +}}{hp.overwrite}
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%f : tensor<4x6xf32>) {
  ^bb0(%l: f32, %r: f32, %acc: f32):
    %0 = arith.mulf %l, %r : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4x6xf32>
  // What is added to is needed.
  // CHECK: linalg.generic
  // CHECK-SAME: outs(%[[C]] : tensor<4x6xf32>) {
  %z = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%c : tensor<4x6xf32>) {
  ^bb0(%l: f32, %r: f32, %acc: f32):
    %0 = arith.mulf %l, %r : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4x6xf32>
  return %y, %z : tensor<4x6xf32>, tensor<4x6xf32>
}

// What updates an argument is written in its place, also by a function that is called for it; the result is gone.
#id = affine_map<(d) -> (d)>

// CHECK-LABEL: func.func private @update(
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<4xf32> {bufferization.writable = true}
// CHECK-SAME: %[[G:[a-z0-9]+]]: tensor<4xf32> {bufferization.writable = false}
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[P]], %[[G]] : tensor<4xf32>, tensor<4xf32>) outs(%[[P]] : tensor<4xf32>)
func.func private @update(%p: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%p, %g : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<4xf32> {bufferization.writable = true, hp.name = "p"}
// CHECK-SAME: -> tensor<4xf32>
// CHECK-SAME: hp.num_results = 1
// CHECK: %[[Q:.*]] = call @update(%[[P]], %[[G:[a-z0-9]+]])
// CHECK: bufferization.materialize_in_destination %[[Q]] in %[[P]]
// CHECK: return %[[G]] : tensor<4xf32>
func.func @step(%p: tensor<4xf32> {hp.name = "p"}, %g: tensor<4xf32>)
    -> (tensor<4xf32> {hp.updates = "p"}, tensor<4xf32>) {
  %0 = call @update(%p, %g) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %g : tensor<4xf32>, tensor<4xf32>
}

// Parts that are written to be put into one tensor are parts of that one.
// CHECK-LABEL: func.func @parts(
func.func @parts(%x: tensor<2x4xf32>) -> tensor<4x4xf32> {
  // CHECK: %[[WHOLE:.*]] = tensor.empty() : tensor<4x4xf32>
  // CHECK-NOT: tensor.empty
  // CHECK: %[[PART:.*]] = tensor.extract_slice %[[WHOLE]][0, 0] [2, 4] [1, 1]
  // CHECK: linalg.exp ins({{.*}}) outs(%[[PART]] : tensor<2x4xf32>)
  // CHECK: tensor.insert_slice %{{.*}} into %[[WHOLE]][0, 0] [2, 4] [1, 1]
  %e = tensor.empty() : tensor<4x4xf32>
  %p = tensor.extract_slice %e[0, 0] [2, 4] [1, 1] : tensor<4x4xf32> to tensor<2x4xf32>
  %a = linalg.exp ins(%x : tensor<2x4xf32>) outs(%p : tensor<2x4xf32>) -> tensor<2x4xf32>
  %r = tensor.insert_slice %a into %e[0, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// Values that are handed on from step to step: the end of the line first, and a result that is the old value is a copy.
// CHECK-LABEL: func.func @line
// CHECK-SAME: (%[[X:[^:]+]]: tensor<8xf32> {{{.*}}}, %[[A:[^:]+]]: tensor<8xf32> {{{.*}}}, %[[B:[^:]+]]: tensor<8xf32>
// CHECK: %[[NEW:.+]] = arith.mulf
// CHECK: %[[OLD:.+]] = bufferization.alloc_tensor() copy(%[[B]])
// CHECK: bufferization.materialize_in_destination %[[A]] in %[[B]]
// CHECK: bufferization.materialize_in_destination %[[NEW]] in %[[A]]
// CHECK: return %[[OLD]]
func.func @line(%x: tensor<8xf32>, %a: tensor<8xf32> {hp.name = "a"}, %b: tensor<8xf32> {hp.name = "b"})
    -> (tensor<8xf32>, tensor<8xf32> {hp.updates = "a"}, tensor<8xf32> {hp.updates = "b"}) {
  %new = arith.mulf %x, %x : tensor<8xf32>
  return %b, %new, %a : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// Two values that change places: one is copied.
// CHECK-LABEL: func.func @swap
// CHECK-SAME: (%[[A:[^:]+]]: tensor<8xf32> {{{.*}}}, %[[B:[^:]+]]: tensor<8xf32>
// CHECK: %[[KEPT:.+]] = bufferization.alloc_tensor() copy(%[[B]])
// CHECK: bufferization.materialize_in_destination %[[A]] in %[[B]]
// CHECK: bufferization.materialize_in_destination %[[KEPT]] in %[[A]]
func.func @swap(%a: tensor<8xf32> {hp.name = "a"}, %b: tensor<8xf32> {hp.name = "b"})
    -> (tensor<8xf32> {hp.updates = "a"}, tensor<8xf32> {hp.updates = "b"}) {
  return %b, %a : tensor<8xf32>, tensor<8xf32>
}

// What a structured op may write over becomes its init.
// CHECK-LABEL: func.func @over_its_input(
// CHECK: %[[T:.*]] = linalg.exp
// CHECK: linalg.log ins(%[[T]] : tensor<4xf32>) outs(%[[T]] : tensor<4xf32>)
func.func @over_its_input(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %t = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %r = linalg.log {hp.written_over = array<i64: 0, 0>} ins(%t : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// What a call may write over, its callee makes there; the mark is gone.
// CHECK-LABEL: func.func private @half(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32> {bufferization.writable = true}
// CHECK: linalg.exp ins(%[[X]] : tensor<4xf32>) outs(%[[X]] : tensor<4xf32>)
func.func private @half(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
// CHECK-LABEL: func.func @over(
// CHECK-NEXT: %[[R:.*]] = call @half(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @over(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = call @half(%x) {hp.written_over = array<i64: 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// What a loop carries from an argument to its next value begins as a copy of it.
// CHECK-LABEL: func.func @carried(
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<4xf32> {bufferization.writable = true, hp.name = "p"}
func.func @carried(%p: tensor<4xf32> {hp.name = "p"}, %g: tensor<4xf32> {hp.name = "g"})
    -> (tensor<4xf32> {hp.name = "p", hp.updates = "p"}) {
  // CHECK: %[[COPY:.*]] = bufferization.alloc_tensor() copy(%[[P]])
  // CHECK: %[[LAST:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[COPY]])
  // CHECK: bufferization.materialize_in_destination %[[LAST]] in %[[P]]
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %last = scf.for %i = %c0 to %c3 step %c1 iter_args(%held = %p) -> (tensor<4xf32>) {
    %next = func.call @update(%held, %g) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  }
  return %last : tensor<4xf32>
}

// Each user has its own right before it, the first of them too: memory is not taken before it is needed.
// CHECK-LABEL: func.func @late(
func.func @late(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[A:.*]] = math.exp %{{.*}} : tensor<4xf32>
  // CHECK-NEXT: %[[E:.*]] = tensor.empty() : tensor<4xf32>
  // CHECK-NEXT: linalg.exp ins(%[[A]] : tensor<4xf32>) outs(%[[E]] : tensor<4xf32>)
  // CHECK-NEXT: %[[F:.*]] = tensor.empty() : tensor<4xf32>
  // CHECK-NEXT: linalg.exp ins({{.*}}) outs(%[[F]] : tensor<4xf32>)
  %e = tensor.empty() : tensor<4xf32>
  %a = math.exp %x : tensor<4xf32>
  %p = linalg.exp ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %q = linalg.exp ins(%p : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %p, %q : tensor<4xf32>, tensor<4xf32>
}
