// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Matmul.cpp - Matrix products through OpenBLAS ---------------------===//
//
// Algorithm
//   1. Cut the product into tiles: every batch index is one, and large products
//      are cut along m or n until there are enough for the threads at hand.
//   2. Tiles run on the worker pool. f32 and f64 tiles are one cblas call on
//      the operands as they lie. f16 and bf16 tiles are converted panel by
//      panel into f32 scratch of a fixed size, multiplied there, and rounded
//      once at the end.
//   3. Bias is put into c before the product where that is free, else added
//      with the activation while the tile is still in the cache.
//   4. Wide products are done in cells: one cblas call for every CellColumns
//      columns from the first on. The order in which OpenBLAS adds up a column
//      depends on where in a call it is and on what else is in the call; so a
//      wide product that is done in parts which begin at a cell, and are wide
//      themselves, has the bits of the whole, for any number of threads.
//
// Cost: 2 m n k flops; scratch below 1 MiB a thread for 16-bit types only.
// Limits: extents and row distances below 2^31 (OpenBLAS takes 32-bit ints).
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CPU/Matmul.h"
#include "lib/Runtime/CPU/Activation.h"
#include "lib/Runtime/CPU/HalfFloat.h"
#include "lib/Runtime/CPU/Reduce.h"
#include "lib/Runtime/CPU/WorkerPool.h"
#include "lib/Runtime/Status.h"

#include <algorithm>
#include <climits>
#include <memory>
#include <type_traits>

namespace hyperparallel::runtime {

namespace {

// cblas.h's constants.
constexpr int RowMajor = 101, NoTrans = 111, Trans = 112;

/// Below this many flops a tile is not worth a thread of its own (~20 us).
constexpr double MinTileFlops = 1e6;
/// Tiles of at least this many flops (~1 ms) may be two for each thread.
constexpr double BalancedTileFlops = 1e8;
/// Columns that a tile should have when rows could be cut instead.
constexpr int64_t NarrowestTile = 256;
/// Cuts along m and n fall on multiples of this, a whole number of the
/// register tiles of OpenBLAS's kernels.
constexpr int64_t CutMultiple = 48;
/// Columns of a cell of a wide product; a multiple of PanelN. Packing a again
/// for each of them costs 2 to 4 % of the product. offload-split-large-ops
/// (kCellRows, kFewestRows there) counts on this number and the next.
constexpr int64_t CellColumns = 512;
/// Products of at least this many columns are wide.
constexpr int64_t WideColumns = 5 * CellColumns;
/// Threads that share the columns of a wide product; more share its rows, too.
constexpr int64_t ColumnThreads = WideColumns / CellColumns;
/// Rows that such a share should have.
constexpr int64_t FewestRows = 48;

/// Panels of 16-bit products: 128 x 512, 512 x 256, 128 x 256 floats.
constexpr int64_t PanelM = 128, PanelN = 256, PanelK = 512;
static_assert(CellColumns % PanelN == 0);

struct Plan {
  const Blas &blas;
  const hp_matmul_desc &desc;
  int64_t batches = 1;
  int64_t cutsM = 1, cutsN = 1; ///< tiles per batch index
  int64_t tileM = 0, tileN = 0;
  bool isWide = false;
};

/// One tile: rows [m0, m0 + m) and columns [n0, n0 + n) of one batch index.
struct Tile {
  const char *a, *b;
  char *c;
  int64_t m0, n0, m, n;
};

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t roundedCut(int64_t extent, int64_t cuts, int64_t multiple) {
  return std::min(extent, ceilDiv(ceilDiv(extent, cuts), multiple) * multiple);
}

/// Tiles are runs of cells. Nothing but the bounds of these runs may depend on
/// how many columns there are.
void cutWide(Plan &plan, int width) {
  const hp_matmul_desc &desc = plan.desc;
  int64_t rowShares = std::min(ceilDiv(width, ColumnThreads),
                               std::max<int64_t>(1, desc.m / FewestRows));
  int64_t columnShares = ceilDiv(width, plan.batches * rowShares);
  // Two for each thread: cores that others use too are evened out.
  plan.tileN = roundedCut(desc.n, 2 * columnShares, CellColumns);
  plan.tileM = roundedCut(desc.m, rowShares, CutMultiple);
}

void cutNarrow(Plan &plan, int width) {
  const hp_matmul_desc &desc = plan.desc;
  // One tile a thread, two if they stay large: cores that others use too are
  // evened out, and packing is repeated little.
  int64_t wanted = plan.batches >= 4 * width ? 1 : ceilDiv(width, plan.batches);
  double flops = 2.0 * desc.m * desc.n * desc.k;
  if (flops >= 2 * BalancedTileFlops * static_cast<double>(wanted))
    wanted *= 2;
  wanted = std::min<int64_t>(
      wanted, std::max<int64_t>(1, static_cast<int64_t>(flops / MinTileFlops)));
  // OpenBLAS packs b for every tile along m, which costs more than packing a
  // again for every tile along n.
  if (desc.n >= desc.m || desc.n >= wanted * NarrowestTile)
    plan.tileN = roundedCut(desc.n, wanted, CutMultiple);
  else
    plan.tileM = roundedCut(desc.m, wanted, CutMultiple);
}

Plan makePlan(const Blas &blas, const hp_matmul_desc &desc, int width) {
  Plan plan{blas, desc};
  for (int64_t i = 0; i < desc.batch_rank; ++i)
    plan.batches *= desc.batch[i];
  plan.tileM = desc.m;
  plan.tileN = desc.n;
  plan.isWide = desc.n >= WideColumns;
  if (width <= 1 || plan.batches == 0)
    return plan;
  if (plan.isWide)
    cutWide(plan, width);
  else
    cutNarrow(plan, width);
  plan.cutsM = desc.m ? ceilDiv(desc.m, plan.tileM) : 1;
  plan.cutsN = desc.n ? ceilDiv(desc.n, plan.tileN) : 1;
  return plan;
}

Tile tileAt(const Plan &plan, int64_t index) {
  const hp_matmul_desc &desc = plan.desc;
  int64_t perBatch = plan.cutsM * plan.cutsN;
  int64_t batch = index / perBatch, rest = index % perBatch;
  int64_t offsetA = 0, offsetB = 0, offsetC = 0;
  for (int64_t i = desc.batch_rank; i-- > 0; batch /= desc.batch[i]) {
    int64_t at = batch % desc.batch[i];
    offsetA += at * desc.stride_a[i];
    offsetB += at * desc.stride_b[i];
    offsetC += at * desc.stride_c[i];
  }
  Tile tile;
  tile.m0 = rest / plan.cutsN * plan.tileM;
  tile.n0 = rest % plan.cutsN * plan.tileN;
  tile.m = std::min(plan.tileM, desc.m - tile.m0);
  tile.n = std::min(plan.tileN, desc.n - tile.n0);
  int64_t bytes = dtypeBytes(desc.dtype), outBytes = dtypeBytes(desc.out_dtype);
  offsetA += tile.m0 * (desc.trans_a ? 1 : desc.ld_a);
  offsetB += tile.n0 * (desc.trans_b ? desc.ld_b : 1);
  offsetC += tile.m0 * desc.ld_c + tile.n0;
  tile.a = static_cast<const char *>(desc.a) + offsetA * bytes;
  tile.b = static_cast<const char *>(desc.b) + offsetB * bytes;
  tile.c = static_cast<char *>(desc.c) + offsetC * outBytes;
  return tile;
}

//===----------------------------------------------------------------------===//
// f32 and f64
//===----------------------------------------------------------------------===//

template <typename T>
struct BlasOf;
template <>
struct BlasOf<float> {
  static Blas::Gemm32 gemm(const Blas &blas) { return blas.sgemm; }
  static Blas::Gemv32 gemv(const Blas &blas) { return blas.sgemv; }
};
template <>
struct BlasOf<double> {
  static Blas::Gemm64 gemm(const Blas &blas) { return blas.dgemm; }
  static Blas::Gemv64 gemv(const Blas &blas) { return blas.dgemv; }
};

/// A row distance is never used when there is only one row, so it may be
/// anything; cblas insists on a valid one.
int distance(int64_t ld, int64_t rowLength) {
  return static_cast<int>(
      std::min<int64_t>(std::max({ld, rowLength, int64_t(1)}), INT_MAX));
}

/// c = alpha op(a) op(b) + beta c for non-empty m, n, k.
template <typename T>
void multiply(const Plan &plan, const Tile &tile, const T *a, const T *b, T *c,
              T alpha, T beta) {
  const hp_matmul_desc &desc = plan.desc;
  int m = static_cast<int>(tile.m), n = static_cast<int>(tile.n);
  int k = static_cast<int>(desc.k);
  if (m == 1) {
    // c' = op(b)' a': a matrix-vector product; a's elements lie ld_a apart if
    // it is stored transposed.
    int incA = desc.trans_a ? static_cast<int>(desc.ld_a) : 1;
    BlasOf<T>::gemv(plan.blas)(
        RowMajor, desc.trans_b ? NoTrans : Trans, desc.trans_b ? n : k,
        desc.trans_b ? k : n, alpha, b,
        distance(desc.ld_b, desc.trans_b ? k : n), a, incA, beta, c, 1);
    return;
  }
  if (n == 1) {
    int incB = desc.trans_b ? 1 : static_cast<int>(desc.ld_b);
    BlasOf<T>::gemv(plan.blas)(RowMajor, desc.trans_a ? Trans : NoTrans,
                               desc.trans_a ? k : m, desc.trans_a ? m : k,
                               alpha, a,
                               distance(desc.ld_a, desc.trans_a ? m : k), b,
                               incB, beta, c, static_cast<int>(desc.ld_c));
    return;
  }
  BlasOf<T>::gemm(plan.blas)(RowMajor, desc.trans_a ? Trans : NoTrans,
                             desc.trans_b ? Trans : NoTrans, m, n, k, alpha, a,
                             distance(desc.ld_a, desc.trans_a ? m : k), b,
                             distance(desc.ld_b, desc.trans_b ? k : n), beta, c,
                             distance(desc.ld_c, n));
}

template <typename T>
void scaleRow(T *row, int64_t n, T beta) {
  for (int64_t j = 0; j < n; ++j)
    row[j] = beta == T(0) ? T(0) : row[j] * beta;
}

/// A whole tile of a narrow product, a cell of a wide one.
template <typename T>
void runCell(const Plan &plan, const Tile &tile) {
  const hp_matmul_desc &desc = plan.desc;
  T *c = reinterpret_cast<T *>(tile.c);
  const T *bias =
      desc.bias ? static_cast<const T *>(desc.bias) + tile.n0 : nullptr;
  T beta = static_cast<T>(desc.beta);
  bool biasFirst = bias && desc.beta == 0 && !desc.activation;
  if (biasFirst) {
    for (int64_t i = 0; i < tile.m; ++i)
      std::copy_n(bias, tile.n, c + i * desc.ld_c);
    beta = T(1);
  }
  if (desc.k > 0)
    multiply<T>(plan, tile, reinterpret_cast<const T *>(tile.a),
                reinterpret_cast<const T *>(tile.b), c,
                static_cast<T>(desc.alpha), beta);
  else
    for (int64_t i = 0; i < tile.m; ++i)
      scaleRow(c + i * desc.ld_c, tile.n, beta);
  if ((bias && !biasFirst) || desc.activation)
    for (int64_t i = 0; i < tile.m; ++i)
      finishRow(c + i * desc.ld_c, tile.n, bias, desc.activation);
}

template <typename T>
void runTile(const Plan &plan, const Tile &tile) {
  if (!plan.isWide)
    return runCell<T>(plan, tile);
  const hp_matmul_desc &desc = plan.desc;
  for (int64_t first = 0; first < tile.n; first += CellColumns) {
    Tile cell = tile;
    cell.b += first * (desc.trans_b ? desc.ld_b : 1) * int64_t(sizeof(T));
    cell.c += first * int64_t(sizeof(T));
    cell.n0 += first;
    cell.n = std::min(CellColumns, tile.n - first);
    runCell<T>(plan, cell);
  }
}

//===----------------------------------------------------------------------===//
// f16 and bf16
//===----------------------------------------------------------------------===//

struct Scratch {
  float a[PanelM * PanelK], b[PanelK * PanelN], c[PanelM * PanelN];
};

Scratch &scratch() {
  static thread_local std::unique_ptr<Scratch> memory;
  if (!memory)
    memory.reset(new Scratch);
  return *memory;
}

template <typename H>
void toFloats(float *dst, int64_t dstPitch, const H *src, int64_t srcPitch,
              int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      dst[i * dstPitch + j] = H::toFloat(src[i * srcPitch + j]);
}

template <typename Out>
struct Element {
  static float load(Out value) { return Out::toFloat(value); }
  static Out store(float value) { return Out::fromFloat(value); }
};
template <>
struct Element<float> {
  static float load(float value) { return value; }
  static float store(float value) { return value; }
};

/// One panel of c, at most PanelM x PanelN.
template <typename H, typename Out>
void runPanel(const Plan &plan, const H *a, const H *b, Out *c, int64_t m,
              int64_t n, const Out *bias) {
  const hp_matmul_desc &desc = plan.desc;
  Scratch &memory = scratch();
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      memory.c[i * n + j] =
          (desc.beta == 0 ? 0.0f
                          : static_cast<float>(desc.beta) *
                                Element<Out>::load(c[i * desc.ld_c + j])) +
          (bias ? Element<Out>::load(bias[j]) : 0.0f);
  for (int64_t k0 = 0; k0 < desc.k; k0 += PanelK) {
    int64_t k = std::min(PanelK, desc.k - k0);
    bool ta = desc.trans_a, tb = desc.trans_b;
    toFloats(memory.a, ta ? m : k, a + k0 * (ta ? desc.ld_a : 1), desc.ld_a,
             ta ? k : m, ta ? m : k);
    toFloats(memory.b, tb ? k : n, b + k0 * (tb ? 1 : desc.ld_b), desc.ld_b,
             tb ? n : k, tb ? k : n);
    plan.blas.sgemm(RowMajor, ta ? Trans : NoTrans, tb ? Trans : NoTrans,
                    static_cast<int>(m), static_cast<int>(n),
                    static_cast<int>(k), static_cast<float>(desc.alpha),
                    memory.a, static_cast<int>(ta ? m : k), memory.b,
                    static_cast<int>(tb ? k : n), 1.0f, memory.c,
                    static_cast<int>(n));
  }
  for (int64_t i = 0; i < m; ++i) {
    if (desc.activation)
      finishRow<float>(memory.c + i * n, n, nullptr, desc.activation);
    for (int64_t j = 0; j < n; ++j)
      c[i * desc.ld_c + j] = Element<Out>::store(memory.c[i * n + j]);
  }
}

template <typename H, typename Out>
void runHalfTile(const Plan &plan, const Tile &tile) {
  const hp_matmul_desc &desc = plan.desc;
  const H *a = reinterpret_cast<const H *>(tile.a);
  const H *b = reinterpret_cast<const H *>(tile.b);
  Out *c = reinterpret_cast<Out *>(tile.c);
  const Out *bias =
      desc.bias ? static_cast<const Out *>(desc.bias) + tile.n0 : nullptr;
  for (int64_t i = 0; i < tile.m; i += PanelM)
    for (int64_t j = 0; j < tile.n; j += PanelN)
      runPanel<H, Out>(plan, a + i * (desc.trans_a ? 1 : desc.ld_a),
                       b + j * (desc.trans_b ? desc.ld_b : 1),
                       c + i * desc.ld_c + j, std::min(PanelM, tile.m - i),
                       std::min(PanelN, tile.n - j), bias ? bias + j : nullptr);
}

bool runTiles(void *context, int64_t begin, int64_t end) {
  const Plan &plan = *static_cast<const Plan *>(context);
  bool widens = plan.desc.out_dtype == HP_F32;
  for (int64_t i = begin; i < end; ++i) {
    Tile tile = tileAt(plan, i);
    switch (plan.desc.dtype) {
    case HP_F32:
      runTile<float>(plan, tile);
      break;
    case HP_F64:
      runTile<double>(plan, tile);
      break;
    case HP_F16:
      widens ? runHalfTile<Float16, float>(plan, tile)
             : runHalfTile<Float16, Float16>(plan, tile);
      break;
    default:
      widens ? runHalfTile<BFloat16, float>(plan, tile)
             : runHalfTile<BFloat16, BFloat16>(plan, tile);
      break;
    }
  }
  return true;
}

hp_status badExtent(const char *name, int64_t value) {
  return fail(HP_INVALID_ARGUMENT, "matmul: %s = %lld is out of range", name,
              static_cast<long long>(value));
}

} // namespace

hp_status checkMatmul(const hp_matmul_desc &desc) {
  if (desc.struct_size < sizeof(hp_matmul_desc))
    return fail(HP_INVALID_ARGUMENT,
                "matmul: expected a description of %zu bytes but got %llu",
                sizeof(hp_matmul_desc),
                static_cast<unsigned long long>(desc.struct_size));
  bool half = desc.dtype == HP_F16 || desc.dtype == HP_BF16;
  if (!half && desc.dtype != HP_F32 && desc.dtype != HP_F64)
    return fail(HP_UNIMPLEMENTED,
                "matmul: expected f16, bf16, f32 or f64 but got %s",
                dtypeName(desc.dtype));
  if (desc.out_dtype != desc.dtype && !(half && desc.out_dtype == HP_F32))
    return fail(HP_UNIMPLEMENTED, "matmul: %s operands with a %s result",
                dtypeName(desc.dtype), dtypeName(desc.out_dtype));
  if (desc.batch_rank < 0 || desc.batch_rank > HP_MATMUL_MAX_BATCH)
    return badExtent("batch_rank", desc.batch_rank);
  for (int64_t i = 0; i < desc.batch_rank; ++i)
    if (desc.batch[i] < 0)
      return badExtent("batch", desc.batch[i]);
  if (desc.activation < HP_ACT_NONE || desc.activation > HP_ACT_SILU)
    return badExtent("activation", desc.activation);
  const std::pair<const char *, int64_t> extents[] = {
      {"m", desc.m},       {"n", desc.n},       {"k", desc.k},
      {"ld_a", desc.ld_a}, {"ld_b", desc.ld_b}, {"ld_c", desc.ld_c}};
  for (const auto &extent : extents)
    if (extent.second < 0 || extent.second > INT_MAX)
      return badExtent(extent.first, extent.second);
  int64_t rowA = desc.trans_a ? desc.m : desc.k;
  int64_t rowB = desc.trans_b ? desc.k : desc.n;
  if ((desc.trans_a ? desc.k : desc.m) > 1 && desc.ld_a < rowA)
    return badExtent("ld_a", desc.ld_a);
  if ((desc.trans_b ? desc.n : desc.k) > 1 && desc.ld_b < rowB)
    return badExtent("ld_b", desc.ld_b);
  if (desc.m > 1 && desc.ld_c < desc.n)
    return badExtent("ld_c", desc.ld_c);
  return HP_OK;
}

void runMatmul(const Blas &blas, const hp_matmul_desc &desc, WorkerPool *pool,
               int slot, int width) {
  if (desc.m == 0 || desc.n == 0)
    return;
  Plan plan = makePlan(blas, desc, width);
  int64_t tiles = plan.batches * plan.cutsM * plan.cutsN;
  double flops = 2.0 * desc.m * desc.n * desc.k * plan.batches;
  if (!pool || tiles <= 1 || flops < 2 * MinTileFlops) {
    runTiles(&plan, 0, tiles);
    return;
  }
  pool->run(slot, width, runTiles, &plan, tiles, 1);
}

double matmulFlops(const hp_matmul_desc &desc) {
  double flops = 2.0 * desc.m * desc.n * desc.k;
  for (int64_t i = 0; i < desc.batch_rank; ++i)
    flops *= static_cast<double>(desc.batch[i]);
  return flops;
}

} // namespace hyperparallel::runtime
