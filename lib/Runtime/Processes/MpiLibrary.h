// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- MpiLibrary.h - MPI through its standard ABI -----------------------===//
//
// The MPI-5 standard fixes the ABI of libmpi_abi.so.1: handles are pointers
// with fixed values, so that one binary serves every implementation (`pip
// install mpich`, or a system's own). These are our own prototypes of the few
// functions that are needed; the library is found when a run asks for it.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_PROCESSES_MPILIBRARY_H
#define HYPERPARALLEL_LIB_RUNTIME_PROCESSES_MPILIBRARY_H

#include "lib/Runtime/hp_runtime.h"

#include <string>

namespace hyperparallel::runtime {

using MpiHandle = void *;

struct MpiStatus {
  int source, tag, error;
  int internal[5];
};

struct MpiLibrary {
  int (*Init_thread)(int *, char ***, int, int *);
  int (*Finalize)();
  int (*Comm_rank)(MpiHandle, int *);
  int (*Comm_size)(MpiHandle, int *);
  int (*Comm_set_errhandler)(MpiHandle, MpiHandle);
  int (*Error_string)(int, char *, int *);
  int (*Isend_c)(const void *, int64_t, MpiHandle, int, int, MpiHandle,
                 MpiHandle *);
  int (*Improbe)(int, int, MpiHandle, int *, MpiHandle *, MpiStatus *);
  int (*Imrecv_c)(void *, int64_t, MpiHandle, MpiHandle *, MpiHandle *);
  int (*Get_count_c)(const MpiStatus *, MpiHandle, int64_t *);
  int (*Test)(MpiHandle *, int *, MpiStatus *);

  // Values of the standard ABI.
  static MpiHandle world() { return reinterpret_cast<MpiHandle>(0x101); }
  static MpiHandle byte() { return reinterpret_cast<MpiHandle>(0x247); }
  static MpiHandle errorsReturn() { return reinterpret_cast<MpiHandle>(0x143); }
  static constexpr int AnySource = -1;
  static constexpr int ThreadFunneled = 1024;
  static constexpr int MaxErrorString = 512;

  std::string describe(int error) const;
};

/// Loads the library: from `path`, if it is not empty, else by search path.
hp_status loadMpi(const std::string &path, MpiLibrary *out);

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_PROCESSES_MPILIBRARY_H
