// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Supervisor.h - Who stays when a rank is killed --------------------===//
//
// mpiexec kills all ranks at once when one of them dies, so that nobody could
// say what happened. Therefore what mpiexec starts is a supervisor, which does
// nothing but start the worker and wait for it:
//
//   mpiexec ─▶ supervisor ─▶ worker (MPI, devices)
//
//   worker ends well      the supervisor ends well.
//   worker fails, dies    the supervisor says so, and stays until the workers
//                         of the other ranks had time to notice and to speak.
//   worker is stopped     it is killed when the others have taken it for lost.
//   supervisor is killed  the worker gets SIGTERM, tells the others, and ends.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_SUPERVISOR_H
#define HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_SUPERVISOR_H

#include <cstdint>
#include <string>

namespace hyperparallel::launcher {

/// This process's rank as mpiexec says it; -1 if there is no mpiexec.
int64_t launchedRank();

/// Returns in the worker only; the supervisor ends when the worker has.
void becomeWorker(int64_t rank, int64_t lostMs);

/// True once somebody asked this process to end.
bool isAskedToEnd();

} // namespace hyperparallel::launcher

#endif // HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_SUPERVISOR_H
