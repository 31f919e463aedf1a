// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- FakeCuda.h - A fake NVIDIA driver (a test double) -----------------===//
//
// NOT a GPU and not NVIDIA's code: libhp_fake_cuda.so answers the functions of
// libcuda.so.1 that the back end uses, on the CPU, so that host logic can be
// tested where there is no GPU. It is strict where a GPU is forgiving.
//
//   - Work is done when it is queued, which is one of the orders that streams
//     allow. Whether the others give the same is decided by vector clocks: each
//     stream and the host is a timeline, events and waits order them,
//     and every access to memory is held against earlier ones that it is not
//     ordered after. A wait that is missing is an error, whatever the timing.
//   - An access outside of an allocation, before its allocation or after its
//     release is an error. Addresses are never used twice.
//   - Fresh memory is full of bytes 0xff, which as floats are no numbers.
//
// A graph (FakeGraphs.cpp) is the calls that were captured; they are made again
// when it is launched.
//
// Where HP_FAKE_CUDA_TRAFFIC names a file, every launch adds a line of JSON to
// it: the sectors of memory that its warps moved (PtxTraffic.h).
//
// Accesses are kept as ranges of bytes: for a kernel, from the lowest to the
// highest that it touches from one of its pointers on, up to the next one.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_TEST_RUNTIME_FAKES_FAKECUDA_H
#define HYPERPARALLEL_TEST_RUNTIME_FAKES_FAKECUDA_H

#include <cstdint>
#include <cstring>
#include <functional>

namespace fakes {
/// What a call of a library may use for itself while it runs: it is full of
/// bytes 0xff from the beginning on, so that whoever else had something there
/// finds no number, and must be so at the end.
class Workspace {
public:
  Workspace(void *at, uint64_t size)
      : at(static_cast<unsigned char *>(at)), size(size) {}
  uint64_t begin() const { return reinterpret_cast<uint64_t>(at); }
  /// Whether it shares a byte with what the call reads or writes.
  bool meets(uint64_t address, uint64_t bytes) const {
    return size > 0 && address < begin() + size && begin() < address + bytes;
  }
  void fill() const {
    if (size > 0)
      std::memset(at, 0xff, size);
  }
  /// Whether nobody wrote to it since.
  bool isIntact() const {
    for (uint64_t i = 0; i < size; ++i)
      if (at[i] != 0xff)
        return false;
    return true;
  }

private:
  unsigned char *at;
  uint64_t size;
};
} // namespace fakes

extern "C" {
/// Keeps the work of a library for a stream that is being captured, and says so
/// by true. It is done, on the stream that it is given, when the graph is
/// launched, and returns 0 or what refused it.
__attribute__((visibility("default"))) bool
hp_fake_cuda_defer(void *stream, const std::function<int(void *)> *work);
/// For the other fakes: work of a library on a stream of the fake driver. Begin
/// and end enclose the accesses; each returns 0, or a CUDA error that
/// cuGetErrorString explains.
__attribute__((visibility("default"))) int hp_fake_cuda_begin(void *stream,
                                                              const char *what);
__attribute__((visibility("default"))) int
hp_fake_cuda_access(void *stream, uint64_t address, uint64_t bytes, int writes);
__attribute__((visibility("default"))) int hp_fake_cuda_end(void *stream);
/// Makes a GPU the calling thread's current one; returns what was.
__attribute__((visibility("default"))) int hp_fake_cuda_current(int device);
/// The GPU whose memory an address is; -1 for the host's, or nobody's.
__attribute__((visibility("default"))) int
hp_fake_cuda_device_of(uint64_t address);
/// Keeps an explanation, and returns the error that stands for it.
__attribute__((visibility("default"))) int
hp_fake_cuda_refuse(const char *message);
}

#endif // HYPERPARALLEL_TEST_RUNTIME_FAKES_FAKECUDA_H
