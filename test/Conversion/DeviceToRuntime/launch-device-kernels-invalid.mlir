// RUN: hp-opt %s --hp-launch-device-kernels --verify-diagnostics

// expected-error @below {{expected a kernel with a geometry (hp.geometry); run hp-form-device-kernels, not hp-form-kernels}}
func.func private @kernel(%a: memref<4xf32>) attributes {hp.kernel} {
  return
}
