// RUN: hp-opt %s --hp-convert-device-to-llvm --verify-diagnostics

// expected-error @below {{expected a kernel of a device (hp.kernel, hp.geometry) but got another function}}
func.func @host(%a: memref<4xf32>) {
  return
}
