// Kernels say how they are launched, and number their assertions.
// RUN: hp-opt %s --split-input-file --hp-convert-device-to-llvm --verify-diagnostics

// expected-error @below {{expected a kernel of a device (hp.kernel, hp.geometry) but got another function}}
func.func @host(%a: memref<4xf32>) {
  return
}

// -----

func.func private @kernel(%ok: i1, %word: !llvm.ptr) attributes {hp.kernel, hp.geometry = array<i64: 1, 64>} {
  // expected-error @below {{expected an assertion with a number (hp.assertion), and the place for it as the kernel's last argument}}
  cf.assert %ok, "too large"
  return
}
