// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- FakeOpapi.h - What the fake's operators share (a test double) -----===//
#ifndef HYPERPARALLEL_TEST_RUNTIME_FAKES_FAKEOPAPI_H
#define HYPERPARALLEL_TEST_RUNTIME_FAKES_FAKEOPAPI_H

#include "lib/Runtime/Ascend/Opapi.h"

#include <functional>
#include <string>
#include <vector>

#define FAKE extern "C" __attribute__((visibility("default")))
/// The second step of an operator.
#define RUN(NAME)                                                              \
  FAKE int NAME(void *workspace, uint64_t size, ExecutorHandle *executor,      \
                void *stream) {                                                \
    return fakes::run(#NAME, workspace, size, executor, stream);               \
  }

namespace hyperparallel::runtime::ascend {
struct TensorHandle {
  std::vector<int64_t> sizes, strides;
  int type;
  char *data;
};
struct ScalarHandle {
  double value;
  int64_t whole;
  int type;
};
struct IntArrayHandle {
  std::vector<int64_t> values;
};
struct ExecutorHandle {
  std::string name;
  uint64_t workspace;
  std::vector<const TensorHandle *> reads, writes;
  std::function<std::string()> work;
};
} // namespace hyperparallel::runtime::ascend

namespace fakes {

using hyperparallel::runtime::ascend::ExecutorHandle;
using hyperparallel::runtime::ascend::IntArrayHandle;
using hyperparallel::runtime::ascend::ScalarHandle;
using hyperparallel::runtime::ascend::TensorHandle;
using Index = std::vector<int64_t>;

/// Notes what is wrong; the status that says so.
int refuse(const std::string &what);
int64_t sizeOf(int type);
bool isFloat(int type);
/// An element: floats of any width, and integers.
float load(const char *at, int type);
void store(char *at, int type, float value);
int64_t loadWhole(const char *at, int type);
void storeWhole(char *at, int type, int64_t value);
/// The place of an element, of which the index may be one of a larger shape:
/// dimensions of size 1 are repeated, and missing ones are in front.
char *placeOf(const TensorHandle &tensor, const Index &index);
void forEach(const std::vector<int64_t> &sizes,
             const std::function<void(const Index &)> &visit);
bool broadcasts(const TensorHandle &from, const std::vector<int64_t> &to);
/// Bytes of its elements, one after the other.
uint64_t denseBytes(const TensorHandle &tensor);
/// The first step of an operator: `work` says what is wrong, or nothing. It
/// wants so much workspace, but no more than its tensors take; products, which
/// put their operands in another order, as much as these take.
int plan(const char *name, uint64_t workspace,
         std::vector<const TensorHandle *> reads,
         std::vector<const TensorHandle *> writes,
         std::function<std::string()> work, uint64_t *size,
         ExecutorHandle **out);
int run(const char *name, void *workspace, uint64_t size,
        ExecutorHandle *executor, void *stream);

} // namespace fakes

#endif // HYPERPARALLEL_TEST_RUNTIME_FAKES_FAKEOPAPI_H
