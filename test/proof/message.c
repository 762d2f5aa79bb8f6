/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Messages of osc_nicstride: what is let through lies within the bytes that came. */
#include "test/proof/proof.h"

#include "osc_nicstride/protocol/message.c"
#include "osc_nicstride/protocol/reply_line.h"
#include "osc_nicstride/protocol/vector.h"

/* Bytes behind the header. */
enum { BEHIND = 48 };

/** unwind: 1 */
void proof_message_header(void)
{
    const size_t len = any_length(sizeof(nicstride_msg_t) + BEHIND);
    const uint64_t beside = any_64();
    unsigned char *bytes = any_bytes(len);
    nicstride_msg_t m;
    const void *layout;

    if (!nicstride_msg_decode(bytes, len, beside, &m, &layout))
        return;
    PROVE(m.type > 0 && m.type < NICSTRIDE_MSG_LAST);
    PROVE(m.offset + m.len >= m.offset);
    PROVE(lies_in(layout, m.layout_len, bytes, len));
    if ((m.flags & NICSTRIDE_MSG_INLINE) != 0)
        PROVE(lies_in((const char *)layout + m.layout_len, m.len, bytes, len));
    if (nicstride_msg_has_ticket(m.type))
        PROVE(lies_in((const char *)layout + m.layout_len, NICSTRIDE_TICKET_BYTES, bytes, len));
    if ((m.flags & NICSTRIDE_MSG_CACHED) != 0)
        PROVE(m.layout_len > NICSTRIDE_LIST_NUMBER_BYTES);
}

/** unwind: 1 */
void proof_message_batch(void)
{
    const size_t len = any_length(NICSTRIDE_BATCH_MAX);
    unsigned char *bytes = any_bytes(len);
    size_t at = any_length(len), before = at, message_len;
    const void *message;

    if (nicstride_batch_next(bytes, len, &at, &message, &message_len))
        PROVE(lies_in(message, message_len, bytes, len) && at > before);
    PROVE(at <= len);
}

/** unwind: 1 */
void proof_message_batch_room(void)
{
    nicstride_batch_t b;
    const size_t max = any_length(NICSTRIDE_BATCH_MAX), len = any_size();

    ASSUME(b.len <= NICSTRIDE_BATCH_MAX);
    unsigned char *at = nicstride_batch_room(&b, max, len);
    if (at != NULL)
        PROVE(lies_in(at, len, b.bytes, sizeof(b.bytes)) && b.len <= max);
    PROVE(b.len <= NICSTRIDE_BATCH_MAX);
}

/** unwind: 1 */
void proof_message_record(void)
{
    const size_t len = any_length(NICSTRIDE_BATCH_MAX);
    unsigned char *bytes = any_bytes(len);
    const bool puts = any_bool();
    size_t at = any_length(len), before = at;
    nicstride_record_t r;

    if (nicstride_record_next(bytes, len, puts, &at, &r))
        PROVE(at > before && (!puts || lies_in(r.data, r.len, bytes, len)));
    PROVE(at <= len);
}

/** Whatever stands in a reply line. unwind: 1 */
void proof_message_reply_line(void)
{
    nicstride_reply_line_t line;
    uint32_t handle;
    size_t len;
    const void *data = nicstride_reply_line_data(&line, &handle, &len);

    if (data != NULL)
        PROVE(lies_in(data, len, line.data, sizeof(line.data)) && handle != 0);
}
