// What cannot be written where it is called is refused.
// RUN: hp-opt %s --split-input-file --hp-inline-dynamic-callees --verify-diagnostics

// expected-error @below {{expected a function on buffers of dynamic shape to be private, so that it can be written where it is called}}
func.func @entry(%list: memref<?xf32>) {
  return
}

// -----

// expected-error @below {{expected a function on buffers of dynamic shape to have one block}}
func.func private @branches(%list: memref<?xf32>) {
  cf.br ^next
^next:
  return
}

// -----

// expected-error @below {{expected a function on buffers of dynamic shape to not call itself}}
func.func private @recursive(%list: memref<?xf32>) {
  call @recursive(%list) : (memref<?xf32>) -> ()
  return
}

// -----

func.func private @listed(%list: memref<?xf32>) {
  return
}
func.func @main() {
  // expected-error @below {{expected @listed, which takes buffers of dynamic shape, to be called only}}
  %function = func.constant @listed : (memref<?xf32>) -> ()
  return
}
