// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- PtxInterpreter.cpp - Runs kernels in PTX on the CPU ---------------===//

#include "test/Runtime/fakes/Ptx.h"
#include "test/Runtime/fakes/PtxTraffic.h"

#include <algorithm>
#include <cstring>

namespace fake {

namespace {

constexpr uint64_t SharedTag = uint64_t(0x7f) << 56;
constexpr uint64_t LocalTag = uint64_t(0x7e) << 56;
constexpr uint64_t TagMask = uint64_t(0xff) << 56;

enum class State : uint8_t { Running, AtBarrier, AtShuffle, Done };

struct Thread {
  std::vector<uint64_t> registers;
  std::vector<uint8_t> local;
  int32_t at = 0;
  State state = State::Running;
};

class Machine {
public:
  Machine(const Kernel &kernel, const uint32_t grid[3], const uint32_t block[3],
          const uint8_t *parameters, uint32_t dynamicShared,
          const AccessCheck &check, TrafficCounter *traffic)
      : kernel(kernel), parameters(parameters), check(check), traffic(traffic),
        shared(kernel.sharedBytes + dynamicShared + 16) {
    std::copy(grid, grid + 3, this->grid);
    std::copy(block, block + 3, this->block);
    threads.resize(size_t(block[0]) * block[1] * block[2]);
  }

  bool run(std::string &error);

private:
  bool runBlock();
  bool runWarp(size_t begin, size_t end);
  bool runThread(Thread &thread, size_t number);
  bool step(Thread &thread, size_t number, const Instruction &one);
  uint64_t read(const Thread &thread, size_t number, const Operand &from) const;
  bool access(Thread &thread, size_t number, const Instruction &one);
  uint8_t *resolve(Thread &thread, size_t number, const Instruction &one,
                   uint64_t address, int bytes);
  bool shuffle(size_t begin, size_t end);
  void write(Thread &thread, const Operand &to, uint64_t bits, Type type) {
    if (to.kind == Operand::Register)
      thread.registers[to.number] = masked(bits, type);
  }
  bool fail(const std::string &what) {
    if (message.empty())
      message = "kernel " + kernel.name + ", line " +
                std::to_string(currentLine) + ": " + what;
    return false;
  }

  const Kernel &kernel;
  const uint8_t *parameters;
  const AccessCheck &check;
  TrafficCounter *traffic;
  uint32_t grid[3], block[3], index[3] = {0, 0, 0};
  std::vector<uint8_t> shared;
  std::vector<Thread> threads;
  std::string message;
  uint32_t currentLine = 0;
};

uint64_t Machine::read(const Thread &thread, size_t number,
                       const Operand &from) const {
  if (from.kind == Operand::Register) {
    uint64_t value = thread.registers[from.number];
    return from.negated ? value ^ 1 : value;
  }
  if (from.kind == Operand::Immediate)
    return from.bits;
  uint64_t tid[3] = {number % block[0], number / block[0] % block[1],
                     number / block[0] / block[1]};
  uint32_t which = from.number;
  return which < 3    ? tid[which]
         : which < 6  ? block[which - 3]
         : which < 9  ? index[which - 6]
         : which < 12 ? grid[which - 9]
                      : number % 32;
}

bool Machine::run(std::string &error) {
  for (index[2] = 0; index[2] < grid[2]; ++index[2])
    for (index[1] = 0; index[1] < grid[1]; ++index[1])
      for (index[0] = 0; index[0] < grid[0]; ++index[0])
        if (!runBlock()) {
          error = message;
          return false;
        }
  return true;
}

bool Machine::runBlock() {
  // What nobody wrote is not a number.
  std::fill(shared.begin(), shared.end(), uint8_t(0xff));
  for (Thread &thread : threads) {
    thread.registers.assign(kernel.numRegisters, 0);
    thread.local.assign(kernel.localBytes, 0xff);
    thread.at = 0;
    thread.state = State::Running;
  }
  for (;;) {
    for (size_t begin = 0; begin < threads.size(); begin += 32)
      if (!runWarp(begin, std::min(begin + 32, threads.size())))
        return false;
    bool isDone = true;
    for (Thread &thread : threads)
      isDone &= thread.state == State::Done;
    if (isDone) {
      if (traffic)
        traffic->endBlock();
      return true;
    }
    for (Thread &thread : threads)
      if (thread.state == State::AtBarrier)
        thread.state = State::Running;
  }
}

/// Runs the threads of a warp until each is at a barrier, or done.
bool Machine::runWarp(size_t begin, size_t end) {
  for (;;) {
    size_t waiting = 0;
    for (size_t i = begin; i < end; ++i) {
      if (threads[i].state == State::Running && !runThread(threads[i], i))
        return false;
      waiting += threads[i].state == State::AtShuffle;
    }
    if (traffic)
      traffic->endRequests();
    if (waiting == 0)
      return true;
    for (size_t i = begin; i < end; ++i)
      if (threads[i].state == State::AtBarrier)
        return fail("some threads of a warp wait at a barrier, others for a "
                    "shuffle");
    if (!shuffle(begin, end))
      return false;
  }
}

bool Machine::shuffle(size_t begin, size_t end) {
  std::vector<uint64_t> values(end - begin);
  int32_t at = -1;
  for (size_t i = begin; i < end; ++i) {
    if (threads[i].state != State::AtShuffle)
      continue;
    if (at >= 0 && threads[i].at != at)
      return fail("the threads of a warp are at different shuffles");
    at = threads[i].at;
    values[i - begin] = read(threads[i], i, kernel.code[at].with[0]);
  }
  const Instruction &one = kernel.code[at];
  for (size_t i = begin; i < end; ++i) {
    if (threads[i].state != State::AtShuffle)
      continue;
    size_t other = (i - begin) ^ read(threads[i], i, one.with[1]);
    if (other >= end - begin ||
        threads[begin + other].state != State::AtShuffle)
      return fail("a shuffle reads from a thread that is not there");
  }
  for (size_t i = begin; i < end; ++i) {
    if (threads[i].state != State::AtShuffle)
      continue;
    size_t other = (i - begin) ^ read(threads[i], i, one.with[1]);
    write(threads[i], one.to[0], values[other], Type::B32);
  }
  for (size_t i = begin; i < end; ++i)
    if (threads[i].state == State::AtShuffle) {
      threads[i].state = State::Running;
      ++threads[i].at;
    }
  return true;
}

bool Machine::runThread(Thread &thread, size_t number) {
  int32_t size = static_cast<int32_t>(kernel.code.size());
  uint64_t steps = 0;
  while (thread.state == State::Running) {
    if (thread.at >= size) {
      thread.state = State::Done;
      return true;
    }
    if (++steps > uint64_t(1) << 32)
      return fail("a thread does not end");
    const Instruction &one = kernel.code[thread.at];
    currentLine = one.line;
    if (one.guard >= 0 &&
        (thread.registers[one.guard] & 1) == uint64_t(one.guardNegated)) {
      ++thread.at;
      continue;
    }
    switch (one.op) {
    case Op::Bra:
      thread.at = one.target;
      continue;
    case Op::Ret:
      thread.state = State::Done;
      return true;
    case Op::Bar:
      thread.state = State::AtBarrier;
      ++thread.at;
      return true;
    case Op::Shfl:
      thread.state = State::AtShuffle;
      return true;
    default:
      if (!step(thread, number, one))
        return false;
      ++thread.at;
    }
  }
  return true;
}

uint8_t *Machine::resolve(Thread &thread, size_t number, const Instruction &one,
                          uint64_t address, int bytes) {
  Space space = one.space;
  if (address % static_cast<uint64_t>(bytes) != 0) {
    fail("an access of " + std::to_string(bytes) +
         " bytes is not aligned to them");
    return nullptr;
  }
  if (space == Space::Generic) {
    space = (address & TagMask) == SharedTag  ? Space::Shared
            : (address & TagMask) == LocalTag ? Space::Local
                                              : Space::Global;
    if (space != Space::Global)
      address &= ~TagMask;
  }
  if (traffic && space != Space::Local)
    traffic->access(space == Space::Shared, one.op == Op::St,
                    static_cast<size_t>(&one - kernel.code.data()), number,
                    address, bytes);
  if (space == Space::Shared || space == Space::Local) {
    std::vector<uint8_t> &memory =
        space == Space::Shared ? shared : thread.local;
    size_t size = space == Space::Shared ? memory.size() - 16 : memory.size();
    if (address + static_cast<uint64_t>(bytes) <= size)
      return memory.data() + address;
    fail(std::string("an access outside of the ") +
         (space == Space::Shared ? "block's shared" : "thread's local") +
         " memory");
    return nullptr;
  }
  if (!check(address, bytes, one.op == Op::St)) {
    fail(one.op == Op::St ? "a store to memory that it may not touch"
                          : "a load from memory that it may not touch");
    return nullptr;
  }
  return reinterpret_cast<uint8_t *>(address);
}

bool Machine::access(Thread &thread, size_t number, const Instruction &one) {
  const Operand &place = one.with[0];
  uint64_t address = place.kind == Operand::Register
                         ? thread.registers[place.number] + place.bits
                         : place.bits;
  int size = sizeOf(one.type);
  if (one.space == Space::Param) {
    if (one.op == Op::St ||
        address + size * one.vector > uint64_t(kernel.parameterBytes))
      return fail("an access outside of the parameters");
    for (uint8_t i = 0; i < one.vector; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, parameters + address + i * size, size);
      write(thread, one.to[i], bits, one.type);
    }
    return true;
  }
  uint8_t *memory = resolve(thread, number, one, address, size * one.vector);
  if (!memory)
    return false;
  for (uint8_t i = 0; i < one.vector; ++i) {
    if (one.op == Op::St) {
      uint64_t bits = read(thread, number, one.with[1 + i]);
      std::memcpy(memory + i * size, &bits, size);
      continue;
    }
    uint64_t bits = 0;
    std::memcpy(&bits, memory + i * size, size);
    // A register may be wider than what is loaded.
    if (isSigned(one.type))
      bits = static_cast<uint64_t>(integerOf(bits, one.type));
    if (one.to[i].kind == Operand::Register)
      thread.registers[one.to[i].number] = bits;
  }
  return true;
}

bool Machine::step(Thread &thread, size_t number, const Instruction &one) {
  auto value = [&](size_t i) {
    return i < one.with.size() ? read(thread, number, one.with[i]) : 0;
  };
  switch (one.op) {
  case Op::Ld:
  case Op::St:
    return access(thread, number, one);
  case Op::Mov:
    write(thread, one.to[0], value(0), one.type);
    return true;
  case Op::Cvta: {
    uint64_t address = value(0);
    uint64_t tag = one.space == Space::Shared  ? SharedTag
                   : one.space == Space::Local ? LocalTag
                                               : 0;
    // Both ways: to generic adds the tag, from generic takes it off.
    write(thread, one.to[0],
          tag && (address & TagMask) == tag ? address & ~TagMask
                                            : address | tag,
          Type::B64);
    return true;
  }
  case Op::Pack: {
    int part = 8 * sizeOf(one.type) / static_cast<int>(one.with.size());
    uint64_t bits = 0;
    for (size_t i = 0; i < one.with.size(); ++i)
      bits |= (value(i) & ((uint64_t(1) << part) - 1)) << (part * i);
    write(thread, one.to[0], bits, one.type);
    return true;
  }
  case Op::Unpack: {
    int part = 8 * sizeOf(one.type) / static_cast<int>(one.to.size());
    uint64_t bits = value(0);
    for (size_t i = 0; i < one.to.size(); ++i)
      if (one.to[i].kind == Operand::Register)
        thread.registers[one.to[i].number] =
            (bits >> (part * i)) & ((uint64_t(1) << part) - 1);
    return true;
  }
  case Op::Cvt: {
    uint64_t bits = convert(one, value(0));
    // cvt.u32.u16 and the like into a wider register.
    write(thread, one.to[0], bits, one.type);
    return message.empty();
  }
  case Op::CvtPack: // the first value is the upper half
    write(thread, one.to[0],
          convert(one, value(0)) << 16 | (convert(one, value(1)) & 0xffff),
          Type::B32);
    return true;
  case Op::Setp: {
    bool result = compare(one, value(0), value(1));
    bool other = one.combine != 0 && (value(2) & 1);
    result = one.combine == 1   ? result && other
             : one.combine == 2 ? result || other
             : one.combine == 3 ? result != other
                                : result;
    write(thread, one.to[0], result, Type::Pred);
    return true;
  }
  case Op::Selp:
    write(thread, one.to[0], value(2) & 1 ? value(0) : value(1), one.type);
    return true;
  case Op::Trap:
    return fail("the kernel trapped");
  default: {
    const char *fault = nullptr;
    uint64_t bits =
        calculate(one, value(0), value(1), value(2), value(3), fault);
    if (fault)
      return fail(fault);
    bool isWide = one.op == Op::MulWide || one.op == Op::MadWide;
    Type wide = sizeOf(one.type) == 4 ? Type::B64 : Type::B32;
    bool isCount = one.op == Op::Popc || one.op == Op::Clz;
    write(thread, one.to[0], bits,
          isWide    ? wide
          : isCount ? Type::B32
                    : one.type);
    return message.empty();
  }
  }
}

} // namespace

bool runKernel(const Kernel &kernel, const uint32_t grid[3],
               const uint32_t block[3], const uint8_t *parameters,
               uint32_t dynamicShared, const AccessCheck &check,
               TrafficCounter *traffic, std::string &error) {
  return Machine(kernel, grid, block, parameters, dynamicShared, check, traffic)
      .run(error);
}

} // namespace fake
