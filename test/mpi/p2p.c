/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/p2p.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/** Bytes before and after the data, and what is in all bytes that are not data. */
enum { GUARD = 64, BACKGROUND = 0xA5 };

const int p2p_sizes[] = {0,    1,    7,     8,      64,      100,        1000, 4096,
                         8191, 8192, 8193,  8194,   8195,    8196,       8197, 8198,
                         8199, 8200, 65536, 100001, 1 << 20, P2P_LARGEST};
const int p2p_nsizes = (int)(sizeof(p2p_sizes) / sizeof(*p2p_sizes));

bool p2p_layer(const char *name)
{
    const char *asked = getenv("OMPI_MCA_pml");

    return asked != NULL && strcmp(asked, name) == 0;
}

bool p2p_is_one_host(void)
{
    const char *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    const char *all = getenv("OMPI_COMM_WORLD_SIZE");

    return here != NULL && all != NULL && strcmp(here, all) == 0;
}

in_addr_t p2p_own_address(void)
{
    in_addr_t found = htonl(INADDR_LOOPBACK);
    struct ifaddrs *all;

    if (p2p_is_one_host() || getifaddrs(&all) != 0)
        return found;
    for (const struct ifaddrs *a = all; a != NULL; a = a->ifa_next)
        if (a->ifa_addr != NULL && a->ifa_addr->sa_family == AF_INET &&
            (a->ifa_flags & IFF_LOOPBACK) == 0)
            found = ((const struct sockaddr_in *)(const void *)a->ifa_addr)->sin_addr.s_addr;
    freeifaddrs(all);
    return found;
}

/* ---- datagrams between two ranks ---- */

static struct sockaddr_in other;
static int ears;

void p2p_ears_open(void)
{
    enum { TAG = 32000 };
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t len = sizeof(at);

    ears = socket(AF_INET, SOCK_DGRAM, 0);
    if (ears < 0 || bind(ears, (struct sockaddr *)&at, len) != 0 ||
        getsockname(ears, (struct sockaddr *)&at, &len) != 0)
        tl_die("no socket to be had");
    at.sin_addr.s_addr = p2p_own_address();
    TL_MPI(MPI_Sendrecv(&at, sizeof(at), MPI_BYTE, 1 - tl_rank(), TAG, &other, sizeof(other),
                        MPI_BYTE, 1 - tl_rank(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

void p2p_ears_close(void)
{
    close(ears);
}

void p2p_tell(int number)
{
    TL_CHECK(sendto(ears, &number, sizeof(number), 0, (const struct sockaddr *)&other,
                    sizeof(other)) == sizeof(number),
             "the other one cannot be told");
}

int p2p_is_told(void)
{
    struct pollfd wait = {.fd = ears, .events = POLLIN};
    int n = -1;

    return poll(&wait, 1, 1000 * TL_PATIENCE) == 1 && recv(ears, &n, sizeof(n), 0) == sizeof(n)
               ? n
               : -1;
}

int p2p_next(void)
{
    return (tl_rank() + 1) % tl_size();
}

int p2p_before(void)
{
    return (tl_rank() + tl_size() - 1) % tl_size();
}

uint64_t p2p_seed(int source, int tag, int number)
{
    tl_rng_t rng = tl_rng(tl_seed() + (uint64_t)source * 1000003,
                          ((uint64_t)(unsigned)tag << 32) + (unsigned)number);

    return tl_random(&rng);
}

/* ---- bytes in a row ---- */

static uint64_t word(uint64_t seed, size_t i)
{
    uint64_t z = (seed + i) * UINT64_C(0x9E3779B97F4A7C15);

    return z ^ (z >> 29);
}

void p2p_fill(void *memory, size_t bytes, uint64_t seed)
{
    unsigned char *m = memory;
    size_t i = 0;

    for (; i + 8 <= bytes; i += 8) {
        uint64_t value = word(seed, i);
        memcpy(m + i, &value, 8);
    }
    if (i < bytes) {
        uint64_t value = word(seed, i);
        memcpy(m + i, &value, bytes - i);
    }
}

bool p2p_holds(const void *memory, size_t bytes, uint64_t seed)
{
    const unsigned char *m = memory;
    uint64_t got, differ = 0;
    size_t i = 0;

    for (; i + 8 <= bytes; i += 8) {
        memcpy(&got, m + i, 8);
        differ |= got ^ word(seed, i);
    }
    if (i < bytes) {
        got = word(seed, i);
        return differ == 0 && memcmp(m + i, &got, bytes - i) == 0;
    }
    return differ == 0;
}

bool p2p_waits(void)
{
    const char *protocol = getenv("OMPI_MCA_pml_superpipe_protocol");

    return protocol != NULL && strcmp(protocol, "auto") != 0 && strcmp(protocol, "eager") != 0;
}

void p2p_check_status(const MPI_Status *status, int source, int tag, size_t bytes, const char *what)
{
    int cancelled = 1, count = -1;
    MPI_Count elements = -1;

    MPI_Test_cancelled(status, &cancelled);
    MPI_Get_count(status, MPI_BYTE, &count);
    MPI_Get_elements_x(status, MPI_BYTE, &elements);
    TL_CHECK(status->MPI_SOURCE == source && status->MPI_TAG == tag && !cancelled,
             "%s: from %d with tag %d%s, not from %d with tag %d", what, status->MPI_SOURCE,
             status->MPI_TAG, cancelled ? " (cancelled)" : "", source, tag);
    TL_CHECK((size_t)elements == bytes && (bytes > INT32_MAX || (size_t)count == bytes),
             "%s: %lld bytes, count %d, not %zu", what, (long long)elements, count, bytes);
}

void p2p_check_empty(const MPI_Status *status, const char *what)
{
    p2p_check_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, what);
}

MPI_Message p2p_find(int way, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Message message = MPI_MESSAGE_NULL;
    int flag = 0;

    switch (way % P2P_PROBES) {
    case 0:
        TL_MPI(MPI_Probe(source, tag, comm, status));
        break;
    case 1:
        while (!flag)
            TL_MPI(MPI_Iprobe(source, tag, comm, &flag, status));
        break;
    case 2:
        TL_MPI(MPI_Mprobe(source, tag, comm, &message, status));
        break;
    default:
        while (!flag)
            TL_MPI(MPI_Improbe(source, tag, comm, &flag, &message, status));
    }
    return message;
}

void p2p_complete_as(MPI_Request *request, MPI_Status *status, int how, int error)
{
    MPI_Request among[3] = {MPI_REQUEST_NULL, *request, MPI_REQUEST_NULL};
    MPI_Status statuses[3];
    int n = 0, index = 1, indices[3] = {1, -1, -1}, done = 0, code = MPI_SUCCESS, said = -1;
    const int several = error == MPI_SUCCESS ? MPI_SUCCESS : MPI_ERR_IN_STATUS;

    status->MPI_ERROR = P2P_KEPT;
    how %= P2P_COMPLETIONS;
    switch (how) {
    case 0:
        TL_MPI_ERROR(MPI_Wait(&among[1], status), error);
        break;
    case 1:
        TL_MPI_ERROR(MPI_Waitall(3, among, statuses), several);
        p2p_check_empty(&statuses[0], "status of a null request");
        statuses[0] = statuses[1];
        break;
    case 2:
        TL_MPI_ERROR(MPI_Waitany(3, among, &index, status), error);
        break;
    case 3:
        TL_MPI_ERROR(MPI_Waitsome(3, among, &n, indices, statuses), several);
        break;
    case 4:
        while (!done && code == MPI_SUCCESS)
            code = MPI_Test(&among[1], &done, status);
        TL_MPI_ERROR(code, error);
        break;
    case 5:
        while (!done && code == MPI_SUCCESS)
            code = MPI_Testall(3, among, &done, statuses);
        TL_MPI_ERROR(code, several);
        statuses[0] = statuses[1];
        break;
    case 6:
        while (!done && code == MPI_SUCCESS)
            code = MPI_Testany(3, among, &index, &done, status);
        TL_MPI_ERROR(code, error);
        break;
    case 7:
        while (n == 0 && code == MPI_SUCCESS)
            code = MPI_Testsome(3, among, &n, indices, statuses);
        TL_MPI_ERROR(code, several);
        break;
    default:
        while (!done)
            TL_MPI(MPI_Request_get_status(among[1], &done, status));
        TL_MPI_ERROR(MPI_Wait(&among[1], MPI_STATUS_IGNORE), error);
    }
    TL_CHECK(index == 1 && indices[0] == 1 && ((how != 3 && how != 7) || n == 1),
             "completion %d says %d, %d, %d", how, index, indices[0], n);
    if (how % 2 == 0) {
        TL_CHECK(status->MPI_ERROR == P2P_KEPT, "completion %d writes %d into MPI_ERROR", how,
                 status->MPI_ERROR);
    } else {
        *status = statuses[0];
        if (error != MPI_SUCCESS)
            MPI_Error_class(status->MPI_ERROR, &said);
        TL_CHECK(error == MPI_SUCCESS || said == error, "completion %d: class %d in the status",
                 how, said);
        status->MPI_ERROR = P2P_KEPT;
    }
    *request = among[1];
}

void p2p_complete(MPI_Request *request, MPI_Status *status, int how)
{
    p2p_complete_as(request, status, how, MPI_SUCCESS);
}

/* ---- layouts ---- */

/** `n` units at the beginning, which the caller has made, and `rest` bytes at `at`. */
static MPI_Datatype with_rest(MPI_Datatype units, int rest, MPI_Aint at)
{
    MPI_Datatype parts[] = {units, MPI_BYTE}, type;
    int lengths[] = {1, rest};
    MPI_Aint places[] = {0, at};

    if (rest == 0)
        return units;
    MPI_Type_create_struct(2, lengths, places, parts, &type);
    MPI_Type_free(&units);
    return type;
}

static MPI_Datatype vector(int bytes, int block, MPI_Aint stride)
{
    MPI_Datatype units;
    int n = bytes / block;

    MPI_Type_create_hvector(n, block, stride, MPI_BYTE, &units);
    return with_rest(units, bytes % block, stride > 0 ? n * stride : stride * n);
}

static MPI_Datatype indexed(int bytes)
{
    int room = bytes / 64 + 64, n = 0, at = 3;
    int *lengths = tl_alloc((size_t)room * sizeof(int));
    int *places = tl_alloc((size_t)room * sizeof(int));
    MPI_Datatype type;

    while (bytes > 0) {
        int length = 1 + n * 37 % 200;

        lengths[n] = length < bytes ? length : bytes;
        places[n] = at;
        at += lengths[n] + 1 + n % 5;
        bytes -= lengths[n++];
    }
    MPI_Type_indexed(n, lengths, places, MPI_BYTE, &type);
    free(lengths);
    free(places);
    return type;
}

/** Records of 1, 8 and 4 bytes, of which the last comes first in memory. */
static MPI_Datatype records(int bytes)
{
    MPI_Datatype fields[] = {MPI_BYTE, MPI_BYTE, MPI_BYTE}, record, spaced, units;
    int lengths[] = {1, 8, 4};
    MPI_Aint places[] = {6, 8, 0};

    MPI_Type_create_struct(3, lengths, places, fields, &record);
    MPI_Type_create_resized(record, 0, 24, &spaced);
    MPI_Type_contiguous(bytes / 13, spaced, &units);
    MPI_Type_free(&record);
    MPI_Type_free(&spaced);
    return with_rest(units, bytes % 13, (MPI_Aint)(bytes / 13) * 24);
}

tr_side_t p2p_side(p2p_shape_t shape, int bytes)
{
    MPI_Datatype type;

    switch (shape) {
    case P2P_VECTOR_8:
        type = vector(bytes, 8, 16);
        break;
    case P2P_VECTOR_64:
        type = vector(bytes, 64, 192);
        break;
    case P2P_VECTOR_1024:
        type = vector(bytes, 1024, 1536);
        break;
    case P2P_INDEXED:
        type = indexed(bytes);
        break;
    case P2P_STRUCT:
        type = records(bytes);
        break;
    case P2P_DOWN:
        type = vector(bytes, 24, -32);
        break;
    default:
        return tr_plain(MPI_BYTE, bytes);
    }
    MPI_Type_commit(&type);
    return tr_place(type, 1);
}

p2p_buffer_t p2p_buffer(tr_side_t side)
{
    p2p_buffer_t b = {.side = side};
    int size;

    MPI_Type_size(side.type, &size);
    b.bytes = (size_t)size * (size_t)side.count;
    b.memory = tl_alloc((size_t)side.span + 2 * GUARD);
    b.at = b.memory + GUARD + side.start;
    p2p_wipe(&b);
    return b;
}

void p2p_wipe(p2p_buffer_t *b)
{
    memset(b->memory, BACKGROUND, (size_t)b->side.span + 2 * GUARD);
}

/** Puts the first `bytes` of a message where the side says. */
static void lay_out(const tr_side_t *side, size_t bytes, uint64_t seed, unsigned char *at)
{
    const typemap_t *map = &side->map;
    size_t size = map->size * (size_t)side->count, done = 0;
    unsigned char *packed = tl_alloc(size);

    p2p_fill(packed, bytes, seed);
    if (map->n == 1 && map->pieces[0].disp == 0 && map->pieces[0].size == map->extent) {
        memcpy(at, packed, bytes);
        done = bytes;
    }
    for (int i = 0; i < side->count && done < bytes; i++) {
        for (size_t k = 0; k < map->n && done < bytes; k++) {
            size_t n = (size_t)map->pieces[k].size;

            n = n < bytes - done ? n : bytes - done;
            memcpy(at + i * map->extent + map->pieces[k].disp, packed + done, n);
            done += n;
        }
    }
    free(packed);
}

void p2p_write(p2p_buffer_t *b, uint64_t seed)
{
    lay_out(&b->side, b->bytes, seed, b->at);
}

void p2p_check(const p2p_buffer_t *b, size_t bytes, uint64_t seed, const char *what)
{
    size_t span = (size_t)b->side.span + 2 * GUARD;
    unsigned char *want = tl_alloc(span);

    memset(want, BACKGROUND, span);
    lay_out(&b->side, bytes, seed, want + GUARD + b->side.start);
    TL_BYTES(b->memory, want, span, "%s, %zu bytes", what, bytes);
    free(want);
}

void p2p_check_outside(const p2p_buffer_t *b, const char *what)
{
    size_t span = (size_t)b->side.span + 2 * GUARD;
    unsigned char *want = tl_alloc(span);

    memset(want, BACKGROUND, span);
    tr_copy(&b->side, b->memory + GUARD, &b->side, want + GUARD);
    TL_BYTES(b->memory, want, span, "%s: outside of the data", what);
    free(want);
}

void p2p_free(p2p_buffer_t *b)
{
    tr_free(&b->side);
    free(b->memory);
}
