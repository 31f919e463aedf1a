// What propagation refuses.
// RUN: hp-opt %s -split-input-file -verify-diagnostics -hypershard-propagate-shardings

// expected-error @below {{expected a mesh in the module but got none}}
// expected-note @below {{declare one: hypershard.mesh @mesh = <["dp"=2, "tp"=2]>}}
module {
  func.func @main(%x: tensor<8xf32>) {
    return
  }
}

// -----

// expected-note @below {{the first is @m}}
hypershard.mesh @m = <["a"=2]>
// expected-error @below {{expected one mesh in the module but got a second, @n}}
hypershard.mesh @n = <["a"=4]>

// -----

hypershard.mesh @m = <["a"=2]>
// expected-error @below {{expected static shapes to propagate shardings but got 'tensor<?xf32>'}}
func.func @main(%x: tensor<?xf32>) {
  return
}

// -----

hypershard.mesh @m = <["a"=2]>
// expected-error @below {{expected static shapes to propagate shardings but result 0 is 'tensor<?xf32>'}}
func.func private @main() -> tensor<?xf32>
