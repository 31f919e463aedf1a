/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Communicators: collectives in all types and groups of one to four, messages
 * that cross each other. One thread queues for all members, in groups of calls.
 */
#include "test/Runtime/conformance/conformance.h"

enum { Most = 4, Count = 6 };

static const int64_t members[Most] = {2, 0, 3, 1};
static place places[Most];
static hp_comm *comms[Most];
static hp_context *here;
static int64_t size;

/* What member `rank` has at `i`: 0 and 1 for booleans, 1 to 3 for others. */
static double element(int64_t rank, int64_t i, int64_t dtype) {
  return dtype == HP_I1 ? (double)((rank * 3 + i) % 2)
                        : (double)((rank * 5 + i) % 3 + 1);
}

/* Member `rank` gets what `as` has. */
static void *filled_as(int64_t rank, int64_t as, int64_t count, int64_t dtype) {
  char host[Most * Count * 8];
  for (int64_t i = 0; i < count; ++i)
    put(host, i, dtype, element(as, i, dtype));
  return upload(places[rank], host, count * size_of(dtype));
}
static void *filled(int64_t rank, int64_t count, int64_t dtype) {
  return filled_as(rank, rank, count, dtype);
}

/* Ends a group of calls, and compares what every member has with `wanted`. */
static void check(void **out, int64_t count, int64_t dtype, double tolerance,
                  double (*wanted)(int64_t rank, int64_t i, int64_t dtype,
                                   int64_t op),
                  int64_t op) {
  EXPECT(hp_group_end(here) == HP_OK);
  for (int64_t rank = 0; rank < size; ++rank) {
    char host[Most * Count * 8];
    download(places[rank], host, out[rank], count * size_of(dtype));
    for (int64_t i = 0; i < count; ++i) {
      double found = get(host, i, dtype), want = wanted(rank, i, dtype, op);
      EXPECT(fabs(found - want) <= tolerance * (1 + fabs(want)));
    }
  }
}

static double gathered(int64_t rank, int64_t i, int64_t dtype, int64_t op) {
  (void)rank, (void)op;
  return element(i / Count, i % Count, dtype);
}
static double exchanged(int64_t rank, int64_t i, int64_t dtype, int64_t op) {
  (void)op;
  return element(i / Count, rank * Count + i % Count, dtype);
}
static double from_last(int64_t rank, int64_t i, int64_t dtype, int64_t op) {
  (void)rank, (void)op;
  return element(size - 1, i, dtype);
}
static double reduced(int64_t rank, int64_t i, int64_t dtype, int64_t op) {
  (void)rank;
  double all = element(0, i, dtype);
  for (int64_t other = 1; other < size; ++other) {
    double one = element(other, i, dtype);
    switch (op) {
    case HP_MAX:
      all = fmax(all, one);
      break;
    case HP_MIN:
      all = fmin(all, one);
      break;
    case HP_PROD:
      all *= one;
      break;
    case HP_AND:
      all = (double)((int64_t)all & (int64_t)one);
      break;
    case HP_OR:
      all = (double)((int64_t)all | (int64_t)one);
      break;
    default:
      all += one;
    }
  }
  return op == HP_AVG ? all / (double)size : all;
}
static double scattered(int64_t rank, int64_t i, int64_t dtype, int64_t op) {
  return reduced(rank, rank * Count + i, dtype, op);
}

static void moves(int64_t dtype) {
  void *in[Most], *wide[Most], *out[Most], *all[Most];
  for (int64_t rank = 0; rank < size; ++rank) {
    in[rank] = filled(rank, Count, dtype);
    wide[rank] = filled(rank, size * Count, dtype);
    out[rank] = filled(rank, size * Count, dtype);
    all[rank] = filled(rank, size * Count, dtype);
  }
  EXPECT(hp_group_begin(here) == HP_OK);
  for (int64_t rank = 0; rank < size; ++rank)
    EXPECT(hp_all_gather(in[rank], all[rank], Count, (hp_dtype)dtype,
                         comms[rank], places[rank].stream) == HP_OK);
  check(all, size * Count, dtype, 0, gathered, 0);
  EXPECT(hp_group_begin(here) == HP_OK);
  for (int64_t rank = 0; rank < size; ++rank)
    EXPECT(hp_all_to_all(wide[rank], out[rank], Count, (hp_dtype)dtype,
                         comms[rank], places[rank].stream) == HP_OK);
  check(out, size * Count, dtype, 0, exchanged, 0);
  EXPECT(hp_group_begin(here) == HP_OK);
  for (int64_t rank = 0; rank < size; ++rank)
    EXPECT(hp_broadcast(in[rank], Count, (hp_dtype)dtype, size - 1, comms[rank],
                        places[rank].stream) == HP_OK);
  check(in, Count, dtype, 0, from_last, 0);
  for (int64_t rank = 0; rank < size; ++rank) {
    release(places[rank], in[rank]);
    release(places[rank], wide[rank]);
    release(places[rank], out[rank]);
    release(places[rank], all[rank]);
  }
}

/* What a device cannot reduce is said before, and refused. */
static void reductions(int64_t dtype, int64_t op) {
  double tolerance = dtype == HP_BF16 ? 2e-2 : dtype == HP_F16 ? 2e-3 : 1e-6;
  int can = hp_device_can(places[0].device, HP_CAN_REDUCE, dtype, op) == HP_OK;
  void *in[Most], *out[Most];
  for (int64_t rank = 0; rank < size; ++rank) {
    in[rank] = filled(rank, size * Count, dtype);
    out[rank] = filled(rank, size * Count, dtype);
  }
  if (!can) {
    hp_status status =
        hp_all_reduce(in[0], out[0], Count, (hp_dtype)dtype, (hp_reduction)op,
                      comms[0], places[0].stream);
    /* Not defined, or not there; a group of one only copies. */
    EXPECT(status == HP_INVALID_ARGUMENT || status == HP_UNIMPLEMENTED ||
           (size == 1 && status == HP_OK));
  } else {
    EXPECT(hp_group_begin(here) == HP_OK);
    for (int64_t rank = 0; rank < size; ++rank)
      EXPECT(hp_all_reduce(in[rank], out[rank], Count, (hp_dtype)dtype,
                           (hp_reduction)op, comms[rank],
                           places[rank].stream) == HP_OK);
    check(out, Count, dtype, tolerance, reduced, op);
    EXPECT(hp_group_begin(here) == HP_OK);
    for (int64_t rank = 0; rank < size; ++rank)
      EXPECT(hp_reduce_scatter(in[rank], out[rank], Count, (hp_dtype)dtype,
                               (hp_reduction)op, comms[rank],
                               places[rank].stream) == HP_OK);
    check(out, Count, dtype, tolerance, scattered, op);
  }
  for (int64_t rank = 0; rank < size; ++rank) {
    EXPECT(hp_stream_sync(places[rank].stream) == HP_OK);
    release(places[rank], in[rank]);
    release(places[rank], out[rank]);
  }
}

/* Each member sends two messages to the next one, which takes the second one
 * first; all of them send before any receives, or the other way round. */
static void messages(int receives_first) {
  void *first[Most], *second[Most], *taken[2][Most];
  for (int64_t rank = 0; rank < size; ++rank) {
    first[rank] = filled(rank, Count, HP_I32);
    second[rank] = filled_as(rank, rank + 1, Count, HP_I32);
    taken[0][rank] = device_bytes(places[rank], Count * 4);
    taken[1][rank] = device_bytes(places[rank], Count * 4);
  }
  EXPECT(hp_group_begin(here) == HP_OK);
  for (int turn = 0; turn < 2; ++turn)
    for (int64_t rank = 0; rank < size; ++rank) {
      hp_comm *comm = comms[rank];
      hp_stream *stream = places[rank].stream;
      int64_t next = (rank + 1) % size, before = (rank + size - 1) % size;
      if (turn == receives_first) {
        EXPECT(hp_send(first[rank], Count, HP_I32, next, 7, comm, stream) ==
               HP_OK);
        EXPECT(hp_send(second[rank], Count, HP_I32, next, 8, comm, stream) ==
               HP_OK);
      } else {
        EXPECT(hp_recv(taken[1][rank], Count, HP_I32, before, 8, comm,
                       stream) == HP_OK);
        EXPECT(hp_recv(taken[0][rank], Count, HP_I32, before, 7, comm,
                       stream) == HP_OK);
      }
    }
  EXPECT(hp_group_end(here) == HP_OK);
  for (int64_t rank = 0; rank < size; ++rank) {
    int64_t before = (rank + size - 1) % size;
    for (int64_t tag = 0; tag < 2; ++tag) {
      int32_t host[Count];
      download(places[rank], host, taken[tag][rank], sizeof(host));
      for (int64_t i = 0; i < Count; ++i)
        EXPECT(host[i] == (int32_t)element(before + tag, i, HP_I32));
      release(places[rank], taken[tag][rank]);
    }
    release(places[rank], first[rank]);
    release(places[rank], second[rank]);
  }
}

static void refusals(void) {
  hp_comm *comm = NULL;
  const int64_t twice[] = {0, 0};
  hp_device *first = NULL;
  EXPECT(hp_device_get(here, 0, &first) == HP_OK);
  EXPECT(hp_comm_create(here, "twice", twice, 2, first, &comm) ==
         HP_INVALID_ARGUMENT);
  const int64_t others[] = {1, 2};
  EXPECT(hp_comm_create(here, "without", others, 2, first, &comm) ==
         HP_INVALID_ARGUMENT);
  float number = 0;
  EXPECT(hp_broadcast(&number, 1, HP_F32, size, comms[0], places[0].stream) ==
         HP_INVALID_ARGUMENT);
  EXPECT(hp_send(&number, 1, HP_F32, -1, 0, comms[0], places[0].stream) ==
         HP_INVALID_ARGUMENT);
  EXPECT(hp_all_gather(NULL, NULL, 1, HP_F32, comms[0], places[0].stream) ==
         HP_INVALID_ARGUMENT);
}

static void group_of(int64_t members_wanted) {
  size = members_wanted;
  EXPECT(hp_group_begin(here) == HP_OK);
  for (int64_t rank = 0; rank < size; ++rank) {
    EXPECT(hp_device_get(here, members[rank], &places[rank].device) == HP_OK);
    EXPECT(hp_stream_create(places[rank].device, HP_STREAM_COMM,
                            &places[rank].stream) == HP_OK);
    EXPECT(hp_comm_create(here, "everybody", members, size, places[rank].device,
                          &comms[rank]) == HP_OK);
  }
  EXPECT(hp_group_end(here) == HP_OK);
  for (int64_t dtype = HP_I1; dtype <= HP_F64; ++dtype) {
    moves(dtype);
    for (int64_t op = HP_SUM; op <= HP_AVG; ++op)
      reductions(dtype, op);
  }
  EXPECT(hp_device_can(places[0].device, HP_CAN_REDUCE, HP_F32, HP_SUM) ==
         HP_OK);
  EXPECT(hp_device_can(places[0].device, HP_CAN_REDUCE, HP_BF16, HP_SUM) ==
         HP_OK);
  EXPECT(hp_group_begin(here) == HP_OK);
  for (int64_t rank = 0; rank < size; ++rank)
    EXPECT(hp_barrier(comms[rank], places[rank].stream) == HP_OK);
  EXPECT(hp_group_end(here) == HP_OK);
  messages(0);
  messages(1);
  refusals();
  for (int64_t rank = 0; rank < size; ++rank) {
    EXPECT(hp_stream_sync(places[rank].stream) == HP_OK);
    EXPECT(hp_comm_destroy(comms[rank]) == HP_OK);
    EXPECT(hp_stream_destroy(places[rank].stream) == HP_OK);
  }
}

void groups(hp_context *context) {
  here = context;
  for (int64_t count = 1; count <= Most; ++count)
    group_of(count);
}
