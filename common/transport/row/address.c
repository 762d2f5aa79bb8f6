/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/transport/row/address.h"

#include <string.h>

/** "onic", and a number that changes with the members that follow, with the form of the memory that
 *  they name (common/transport/shm/inbox.c, common/pipeline/shm/rx_pool.c), and with the messages
 *  of the pipeline. */
#define FORMAT ((uint64_t)0x6f6e6963 << 32 | 11)

typedef struct head {
    uint64_t format;
    uint64_t name;
    uint64_t credit;
    uint64_t ucx_len;
    onic_cma_id_t cma_id;
    onic_segment_key_t queues;
} head_t;

_Static_assert(sizeof(onic_cma_id_t) ==
                       40 + 2 * 8 + sizeof(onic_file_key_t) + sizeof(onic_life_t) &&
                   sizeof(onic_segment_key_t) == sizeof(onic_file_key_t) + 32 + 3 * 8,
               "it travels, so it has no gaps");

size_t onic_address_size(const onic_address_t *a)
{
    return sizeof(head_t) + a->ucx_len;
}

static bool is_sound(const onic_address_t *a)
{
    return a->ucx_len > 0 && a->ucx_len <= ONIC_ADDRESS_MAX &&
           memchr(a->queues.name, '\0', sizeof(a->queues.name)) != NULL;
}

size_t onic_address_write(const onic_address_t *a, void *bytes, size_t cap)
{
    const head_t head = {FORMAT, a->name, a->credit, a->ucx_len, a->cma_id, a->queues};

    if (!is_sound(a) || cap < onic_address_size(a))
        return 0;
    memcpy(bytes, &head, sizeof(head));
    memcpy((char *)bytes + sizeof(head), a->ucx, a->ucx_len);
    return onic_address_size(a);
}

bool onic_address_read(const void *bytes, size_t len, onic_address_t *a)
{
    head_t head;

    if (len < sizeof(head))
        return false;
    memcpy(&head, bytes, sizeof(head));
    *a = (onic_address_t){.name = head.name,
                          .credit = head.credit,
                          .cma_id = head.cma_id,
                          .queues = head.queues,
                          .ucx = (const char *)bytes + sizeof(head),
                          .ucx_len = head.ucx_len};
    return head.format == FORMAT && head.ucx_len == len - sizeof(head) && is_sound(a);
}
