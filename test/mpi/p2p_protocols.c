/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* thorough */
/* p2p: */
/**
 * @file
 * A protocol that is forced carries what it can carry, and nothing that it cannot: by the counters
 * of pml_superpipe, for each message. The bytes that were counted are those that were sent, also
 * where many messages are under way at a time. Over other layers only the data is checked.
 */
#include "test/mpi/p2p.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "test/mpi/counter.h"

/** Below the one a message goes with its envelope unless that is forbidden, above the other not:
 *  what is between depends on the transport. */
enum { CERTAINLY_SHORT = 4096, CERTAINLY_LONG = 65536, CERTAINLY_LONG_AWAY = 1 << 19 };
enum { TAG = 7, MANY = 12, MANY_BYTES = 500000 };

/** Carriers come first. */
enum { EAGER, STREAM, PIPELINE, COPY, RENDEZVOUS, CARRIERS, ANY_LONG = CARRIERS, ANY };
enum { ANNOUNCED, NO_CREDIT, FALLBACKS, OTHERS };
static const char *const carriers[CARRIERS] = {"eager", "stream", "pipeline", "copy", "rendezvous"};
static const char *const others[OTHERS] = {"announced", "no_credit", "fallbacks"};

typedef struct counts {
    unsigned long long messages[CARRIERS], bytes[CARRIERS], other[OTHERS];
} counts_t;

static struct {
    counter_t *messages[CARRIERS], *bytes[CARRIERS], *other[OTHERS];
    counts_t before;
} counting;

static counter_t *begin(const char *kind, const char *name)
{
    char full[64];

    strcpy(full, "pml_superpipe_");
    strcat(full, kind);
    return counter_begin(strcat(full, name));
}

static void counting_begin(void)
{
    for (int c = 0; c < CARRIERS; c++) {
        counting.messages[c] = begin("messages_", carriers[c]);
        counting.bytes[c] = begin("bytes_", carriers[c]);
    }
    for (int i = 0; i < OTHERS; i++)
        counting.other[i] = begin("", others[i]);
}

static void counting_end(void)
{
    for (int c = 0; c < CARRIERS; c++) {
        counter_end(counting.messages[c]);
        counter_end(counting.bytes[c]);
    }
    for (int i = 0; i < OTHERS; i++)
        counter_end(counting.other[i]);
}

static counts_t read_all(void)
{
    counts_t n;

    for (int c = 0; c < CARRIERS; c++) {
        n.messages[c] = counter_read(counting.messages[c]);
        n.bytes[c] = counter_read(counting.bytes[c]);
    }
    for (int i = 0; i < OTHERS; i++)
        n.other[i] = counter_read(counting.other[i]);
    return n;
}

/** What was counted since the last call. Messages of collectives count when they are received, so
 *  none come between. */
static counts_t counted(void)
{
    counts_t now = read_all(), n = now;

    for (int c = 0; c < CARRIERS; c++) {
        n.messages[c] -= counting.before.messages[c];
        n.bytes[c] -= counting.before.bytes[c];
    }
    for (int i = 0; i < OTHERS; i++)
        n.other[i] -= counting.before.other[i];
    counting.before = now;
    return n;
}

/* ---- what is expected ---- */

typedef struct message {
    int bytes;
    p2p_shape_t from, to;
    bool self, same_host;
} message_t;

static const char *forced;
/** Over hosts it is not known who may copy from whom. */
static bool may_copy, knows_copy;
/** Where there is one it may be what connects processes of a host, too. */
static bool adapter;

/** The blocks of the vector that is used have 64 bytes. */
static bool is_contiguous(p2p_shape_t shape, int bytes)
{
    return shape == P2P_PLAIN || bytes <= 64;
}

static bool can(int carrier, const message_t *m)
{
    const bool from = is_contiguous(m->from, m->bytes), to = is_contiguous(m->to, m->bytes);

    switch (carrier) {
    case EAGER:
        return m->bytes <= CERTAINLY_SHORT;
    case STREAM:
        return true;
    case PIPELINE:
        return m->same_host && !m->self;
    case COPY:
        return m->self || (m->same_host && (may_copy || !knows_copy) && from && to);
    default:
        return from && to && !m->self && (!m->same_host || adapter);
    }
}

static int certainly_long(const message_t *m)
{
    return m->same_host ? CERTAINLY_LONG : CERTAINLY_LONG_AWAY;
}

/** By what a message comes. */
static int carrier_of(const message_t *m)
{
    int f = 0;

    if (m->bytes == 0)
        return EAGER;
    while (f < CARRIERS && strcmp(forced, carriers[f]) != 0)
        f++;
    if (f == CARRIERS || f == EAGER)
        return m->bytes <= CERTAINLY_SHORT ? EAGER : m->bytes < certainly_long(m) ? ANY : ANY_LONG;
    if (can(f, m) && (f != COPY || knows_copy || m->self) && (f != RENDEZVOUS || !m->same_host))
        return f;
    /* What comes from itself is never cheaper by other ways. */
    return m->self ? COPY : ANY_LONG;
}

/** Is the next rank of this host? Asked for before anything is counted: that sends messages. */
static bool next_on_host;

static void check_counts(const message_t *m, const counts_t *n)
{
    const int carrier = carrier_of(m);

    for (int c = 0; c < CARRIERS; c++) {
        const bool might = carrier == ANY || (carrier == ANY_LONG && c != EAGER && can(c, m));
        const bool is = c == carrier || (might && n->messages[c] == 1);

        TL_CHECK(n->messages[c] == is && n->bytes[c] == (is ? (unsigned)m->bytes : 0),
                 "%d bytes%s%s%s with %s forced: %llu messages of %llu bytes by %s", m->bytes,
                 m->self ? " to itself" : "", m->from == P2P_PLAIN ? "" : ", sent as a vector",
                 m->to == P2P_PLAIN ? "" : ", received as a vector", forced, n->messages[c],
                 n->bytes[c], carriers[c]);
    }
    /* What comes is of one host, and what goes may be for another. */
    const bool alike = m->self || m->same_host == next_on_host;

    TL_CHECK(carrier == ANY || !alike || n->other[ANNOUNCED] == (carrier != EAGER),
             "%d bytes with %s forced: %llu announced", m->bytes, forced, n->other[ANNOUNCED]);
    TL_CHECK(n->other[NO_CREDIT] == 0 && n->other[FALLBACKS] == 0,
             "%d bytes with %s forced: %llu without credit, %llu begun again", m->bytes, forced,
             n->other[NO_CREDIT], n->other[FALLBACKS]);
}

/* ---- one at a time ---- */

/** Each rank to the next one at that distance. */
static void send_one(const message_t *m, int distance, bool counts)
{
    const int to = (tl_rank() + distance) % tl_size();
    const int from = (tl_rank() + tl_size() - distance) % tl_size();
    p2p_buffer_t out = p2p_buffer(p2p_side(m->from, m->bytes));
    p2p_buffer_t in = p2p_buffer(p2p_side(m->to, m->bytes));
    MPI_Status status;
    counts_t n;

    p2p_write(&out, p2p_seed(tl_rank(), TAG, m->bytes));
    TL_MPI(MPI_Sendrecv(out.at, out.side.count, out.side.type, to, TAG, in.at, in.side.count,
                        in.side.type, from, TAG, MPI_COMM_WORLD, &status));
    n = counted();
    p2p_check_status(&status, from, TAG, (size_t)m->bytes, "one at a time");
    p2p_check(&in, in.bytes, p2p_seed(from, TAG, m->bytes), "one at a time");
    if (counts)
        check_counts(m, &n);
    p2p_free(&out);
    p2p_free(&in);
}

static void test_each(int distance, bool same_host, bool counts)
{
    static const int sizes[] = {
        0, 1, 64, 100, 1000, CERTAINLY_SHORT, 20000, 100001, CERTAINLY_LONG_AWAY, P2P_LARGEST};
    static const p2p_shape_t shapes[] = {P2P_PLAIN, P2P_VECTOR_64};

    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        /* Of the largest the sides are alike. */
        for (int i = 0; i < 4; i += sizes[s] == P2P_LARGEST ? 3 : 1) {
            const message_t m = {.bytes = sizes[s],
                                 .from = shapes[i % 2],
                                 .to = shapes[i / 2],
                                 .self = distance % tl_size() == 0,
                                 .same_host = same_host};

            send_one(&m, distance, counts);
        }
    }
}

/* ---- many at a time ---- */

/** Who finds no room for a message may take another way: then it counts twice. */
static void check_sums(const counts_t *n, unsigned messages, unsigned long long bytes)
{
    unsigned long long m = 0, b = 0;

    for (int c = 0; c < CARRIERS; c++) {
        m += n->messages[c];
        b += n->bytes[c];
    }
    TL_CHECK(m >= messages && m <= messages + n->other[FALLBACKS] && b >= bytes &&
                 (n->other[FALLBACKS] > 0 || b == bytes),
             "%llu messages of %llu bytes, not %u of %llu; %llu were begun again", m, b, messages,
             bytes, n->other[FALLBACKS]);
}

static void test_many(bool counts)
{
    const int to = (tl_rank() + 1) % tl_size(), from = (tl_rank() + tl_size() - 1) % tl_size();
    unsigned char *out = tl_alloc(MANY * MANY_BYTES), *in = tl_alloc(MANY * MANY_BYTES);
    MPI_Request requests[2 * MANY];
    unsigned long long bytes = 0;
    counts_t n;

    for (int i = 0; i < MANY; i++) {
        const int length = MANY_BYTES >> i;

        p2p_fill(out + i * MANY_BYTES, (size_t)length, p2p_seed(tl_rank(), TAG, i));
        TL_MPI(MPI_Irecv(in + i * MANY_BYTES, MANY_BYTES, MPI_BYTE, from, i, MPI_COMM_WORLD,
                         &requests[i]));
        TL_MPI(MPI_Isend(out + i * MANY_BYTES, length, MPI_BYTE, to, i, MPI_COMM_WORLD,
                         &requests[MANY + i]));
        bytes += (unsigned)length;
    }
    TL_MPI(MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE));
    n = counted();
    for (int i = 0; i < MANY; i++) {
        TL_CHECK(p2p_holds(in + i * MANY_BYTES, (size_t)(MANY_BYTES >> i), p2p_seed(from, TAG, i)),
                 "message %d of many", i);
    }
    if (counts)
        check_sums(&n, MANY, bytes);
    free(out);
    free(in);
}

static bool has_adapter(void)
{
    glob_t found;
    const bool has = glob("/sys/class/infiniband/*", 0, NULL, &found) == 0;

    if (has)
        globfree(&found);
    return has;
}

int main(int argc, char **argv)
{
    static const message_t any = {.bytes = CERTAINLY_LONG};
    bool counts;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    forced = getenv("OMPI_MCA_pml_superpipe_protocol");
    forced = forced != NULL ? forced : "auto";
    may_copy = tl_may_copy();
    adapter = has_adapter();
    knows_copy = tl_one_host();
    const bool same_host = tl_same_host((tl_rank() + tl_size() - 1) % tl_size());

    next_on_host = tl_same_host((tl_rank() + 1) % tl_size());
    counting_begin();
    counts = counting.messages[EAGER] != NULL;
    /* Credit is told with the first answer, and whom the pipeline reaches shows with connections.
     */
    send_one(&any, 1, false);
    send_one(&any, tl_size() - 1, false);
    MPI_Barrier(MPI_COMM_WORLD);
    (void)counted();
    test_each(0, true, counts);
    test_each(1, same_host, counts);
    test_many(counts);
    MPI_Barrier(MPI_COMM_WORLD);
    counting_end();
    return tl_finish();
}
