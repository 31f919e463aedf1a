/*===- Registration.h - C API: register dialects and passes ----*- C -*-====*/
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*===--------------------------------------------------------------------===*/
#ifndef HYPERPARALLEL_LIB_CAPI_REGISTRATION_H
#define HYPERPARALLEL_LIB_CAPI_REGISTRATION_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Adds our dialects, and the external models of foreign ops, to a registry. */
MLIR_CAPI_EXPORTED void hpRegisterDialects(MlirDialectRegistry registry);

/** Registers our passes and pipelines with the process. Call once. */
MLIR_CAPI_EXPORTED void hpRegisterPasses(void);

#ifdef __cplusplus
}
#endif

#endif /* HYPERPARALLEL_LIB_CAPI_REGISTRATION_H */
