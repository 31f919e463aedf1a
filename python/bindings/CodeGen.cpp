//===- CodeGen.cpp - compile programs, from Python ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/CAPI/CodeGen.h"
#include "python/bindings/Module.h"

#include "mlir/Bindings/Python/Diagnostics.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;

static MlirStringRef toRef(const std::string &text) {
  return mlirStringRefCreate(text.data(), text.size());
}

void hyperparallel::bindCodeGen(nb::module_ &m) {
  m.def("cache_directory", [] {
    std::string directory;
    hpGetCacheDirectory(
        [](MlirStringRef text, void *out) {
          static_cast<std::string *>(out)->assign(text.data, text.length);
        },
        &directory);
    return directory;
  });
  m.def(
      "compile_program",
      [](MlirModule module, const std::string &path,
         const std::string &cacheDirectory, int64_t threads,
         const std::string &kernels, const std::string &architecture) {
        mlir::python::CollectDiagnosticsToStringScope diagnostics(
            mlirModuleGetContext(module));
        HpCompileStatistics statistics;
        MlirLogicalResult result;
        {
          nb::gil_scoped_release unlocked;
          result =
              kernels.empty()
                  ? hpCompileProgram(module, toRef(path), toRef(cacheDirectory),
                                     threads, &statistics)
                  : hpCompileDeviceProgram(module, toRef(path), toRef(kernels),
                                           toRef(architecture),
                                           toRef(cacheDirectory), threads,
                                           &statistics);
        }
        if (mlirLogicalResultIsFailure(result))
          throw nb::value_error(diagnostics.takeMessage().c_str());
        return std::pair(statistics.numObjects, statistics.numCached);
      },
      nb::arg("module"), nb::arg("path"), nb::arg("cache_directory"),
      nb::arg("threads") = 0, nb::arg("kernels") = "",
      nb::arg("architecture") = "",
      "Lowers the program of one device (the module is consumed) to a shared "
      "object and its description; returns (objects, of them cached). With "
      "`kernels`, a path, the shared object is the host's program for a device "
      "of `architecture`, and the kernels go there as PTX.");
}
