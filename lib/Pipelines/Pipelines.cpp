//===- Pipelines.cpp - the phases, in order -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The table of contents of the compiler, and the only place where the order of
// passes is written. Each phase ends with the check of its contract.
//===----------------------------------------------------------------------===//
#include "lib/Pipelines/Pipelines.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/ErrorHandling.h"

using namespace mlir;

namespace {
struct Phase {
  StringLiteral name, summary, passes;
};
} // namespace

// Phase 1, annotate, is hypershard-apply-plan, which takes the plan.
static constexpr Phase kPhases[] = {
    {"hp-normalize",
     "Phase 0: check what was imported, and write it in its canonical form",
     "hp-verify-imported,indexing-assert-reads,canonicalize,cse,"
     "hypershard-expand-batch-dims,canonicalize,cse"},
    {"hp-propagate", "Phase 2: give every tensor a sharding",
     "hypershard-split-constants,"
     "hypershard-specialize-functions,"
     "hypershard-propagate-shardings,"
     "hypershard-verify-propagated"},
    {"hp-reshard", "Phase 3: make ops and values agree, by collectives",
     "hypershard-insert-reshards,"
     "hypershard-lower-reshards,"
     "hypershard-verify-resharded"},
    {"hp-unroll", "Before phase 4: microbatches of an imported step, apart",
     "hypermpmd-unroll-microbatches,"
     "canonicalize,cse"},
    {"hp-split", "Phase 4, from ordered fragments to programs of groups",
     "hypermpmd-split-programs,"
     "hypermpmd-verify-programs"},
    {"hp-partition", "Phase 5: one device's own program",
     "hypershard-partition-program,"
     "hypershard-optimize-collectives,"
     "canonicalize,cse,"
     "hypershard-lift-collectives,"
     "hypershard-reorder-collectives,"
     "hypershard-combine-collectives,"
     "hypershard-verify-partitioned"},
    {"hp-offload", "Phase 6: fit the program into the device's memory",
     "hp-fuse,"
     "offload-split-large-ops,"
     "offload-plan-transfers,"
     "offload-insert-transfers,"
     "offload-verify-tiers"},
    {"hp-shard", "Phases 2 to 5 on an annotated program",
     "hp-propagate,hp-reshard,hp-partition"},
};

static void build(OpPassManager &pm, const Phase &phase) {
  // The table is ours: a pass that it names and that is not registered is a
  // bug.
  if (failed(parsePassPipeline(phase.passes, pm)))
    llvm_unreachable("a phase names a pass that does not exist");
}

template <size_t index>
static void registerFrom() {
  if constexpr (index < std::size(kPhases)) {
    PassPipelineRegistration<>(
        kPhases[index].name, kPhases[index].summary,
        [](OpPassManager &pm) { build(pm, kPhases[index]); });
    registerFrom<index + 1>();
  }
}

void mlir::hyperparallel::registerPhasePipelines() { registerFrom<0>(); }
