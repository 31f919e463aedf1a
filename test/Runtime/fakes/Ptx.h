// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Ptx.h - Kernels in PTX, read and run on the CPU (a test double) ---===//
//
// The fake GPU runs the very PTX that a program ships with. A thread runs until
// it has to wait: at a barrier for its block, at a shuffle for its warp. A
// block whose threads wait for different things is an error, as is every
// instruction that is not known: nothing is skipped.
//
// Addresses: global memory is the host's; shared and local memory are offsets
// within the block's and the thread's, and generic addresses of them carry a
// tag.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_TEST_RUNTIME_FAKES_PTX_H
#define HYPERPARALLEL_TEST_RUNTIME_FAKES_PTX_H

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fake {

class TrafficCounter;

enum class Type : uint8_t {
  None,
  Pred,
  B8,
  B16,
  B32,
  B64,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  BF16,
  F32,
  F64
};
int sizeOf(Type type);
bool isSigned(Type type);
bool isFloat(Type type);

enum class Space : uint8_t { Generic, Global, Shared, Local, Param, Const };

struct Operand {
  enum Kind : uint8_t { None, Register, Immediate, Special } kind = None;
  bool negated = false;
  uint32_t number = 0; ///< of a register, or of a special one
  uint64_t bits = 0;   ///< of an immediate; added to a register in an address
};

enum class Op : uint8_t {
  Ld,
  St,
  Mov,
  Pack,
  Unpack,
  Cvta,
  Cvt,
  CvtPack, ///< of two values to halves of a word
  Add,
  Sub,
  Mul,
  MulHi,
  MulWide,
  Mad,
  MadWide,
  Fma,
  Div,
  Rem,
  Min,
  Max,
  Abs,
  Neg,
  And,
  Or,
  Xor,
  Not,
  Shl,
  Shr,
  Setp,
  Selp,
  Bra,
  Bar,
  Ret,
  Shfl,
  Sqrt,
  Rcp,
  Rsqrt,
  Ex2,
  Lg2,
  Copysign,
  Popc,
  Clz,
  Brev,
  Prmt,
  Shf,
  Bfe,
  Bfi,
  Trap
};

struct Instruction {
  Op op;
  Type type = Type::None, from = Type::None;
  Space space = Space::Generic;
  uint8_t vector = 1;
  uint8_t compare = 0; ///< of setp; the rounding of cvt
  uint8_t combine = 0; ///< of setp: 0 none, 1 and, 2 or, 3 xor
  bool unordered = false, nan = false, left = false;
  int32_t guard = -1; ///< predicate register
  bool guardNegated = false;
  int32_t target = 0;
  std::vector<Operand> to, with;
  uint32_t line = 0;
};

struct Kernel {
  std::string name;
  std::vector<int> parameterSizes;
  std::vector<int> parameterOffsets;
  int parameterBytes = 0;
  int mostThreads = 1024;
  uint32_t numRegisters = 0;
  uint32_t sharedBytes = 0, localBytes = 0;
  std::vector<Instruction> code;
};

struct Module {
  std::map<std::string, Kernel> kernels;
  /// Variables in global memory; their storage lives as long as the module.
  std::vector<std::unique_ptr<std::vector<uint64_t>>> storage;
  struct Variable {
    uint64_t address;
    uint64_t bytes;
  };
  std::map<std::string, Variable> variables;
};

/// Reads PTX; an error names the line that is not understood.
bool parsePtx(const std::string &text, Module &out, std::string &error);

/// The low bits of a type's size.
uint64_t masked(uint64_t bits, Type type);
/// The integer that they are.
int64_t integerOf(uint64_t bits, Type type);
/// What an instruction on values computes; `fault` is set if nothing.
uint64_t calculate(const Instruction &one, uint64_t a, uint64_t b, uint64_t c,
                   uint64_t fourth, const char *&fault);
uint64_t convert(const Instruction &one, uint64_t bits);
bool compare(const Instruction &one, uint64_t a, uint64_t b);

/// Called before global memory is touched; false forbids it.
using AccessCheck =
    std::function<bool(uint64_t address, int bytes, bool writes)>;

/// Runs all blocks of a grid, one after the other. What their warps move is
/// counted where `traffic` is given.
bool runKernel(const Kernel &kernel, const uint32_t grid[3],
               const uint32_t block[3], const uint8_t *parameters,
               uint32_t dynamicShared, const AccessCheck &check,
               TrafficCounter *traffic, std::string &error);

} // namespace fake

#endif // HYPERPARALLEL_TEST_RUNTIME_FAKES_PTX_H
