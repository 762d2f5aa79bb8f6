/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The decoder; see header.h. */
#include "pml_superpipe/matching/header.h"

_Static_assert(sizeof(superpipe_prefix_t) == 16 && sizeof(superpipe_rts_t) == 64 &&
                   sizeof(superpipe_control_t) == 32 && sizeof(superpipe_offer_t) == 40 &&
                   sizeof(superpipe_cts_t) == 32 && sizeof(superpipe_short_t) == 20,
               "messages have no padding");

/** The rest of a header. */
typedef struct reader {
    const unsigned char *at;
    size_t len;
} reader_t;

static bool take(reader_t *r, void *to, size_t bytes)
{
    if (r->len < bytes)
        return false;
    memcpy(to, r->at, bytes);
    r->at += bytes;
    r->len -= bytes;
    return true;
}

/** Takes the data, which is contiguous. */
static bool take_data(superpipe_incoming_t *in, reader_t *r, const void *data, size_t len)
{
    if (r->len > 0 && len > 0)
        return false;
    in->data = r->len > 0 ? r->at : data;
    in->bytes = r->len > 0 ? r->len : len;
    return true;
}

static bool decode_rts(superpipe_incoming_t *in, reader_t *r, const void *data, size_t len)
{
    superpipe_rts_t e;

    if (!take(r, (char *)&e + sizeof(e.prefix), sizeof(e) - sizeof(e.prefix)))
        return false;
    in->source = e.source;
    in->tag = e.tag;
    in->offer = e.offer;
    return take_data(in, r, data, len) && e.offer.handle != 0 && e.offer.length <= INT64_MAX &&
           e.offer.block > 0 && e.offer.early <= SUPERPIPE_EARLY_MAX &&
           e.offer.early <= e.offer.length && in->bytes <= e.offer.early;
}

static bool decode_word(superpipe_incoming_t *in, reader_t *r, const void *data, size_t len)
{
    superpipe_control_t w;

    if (!take(r, (char *)&w + sizeof(w.prefix), sizeof(w) - sizeof(w.prefix)))
        return false;
    in->handle = w.handle;
    in->value = w.value;
    if (in->prefix.kind == SUPERPIPE_KIND_CTS &&
        (in->prefix.protocol >= SUPERPIPE_PROTOCOLS || !take(r, &in->cts, sizeof(in->cts))))
        return false;
    if (in->prefix.kind == SUPERPIPE_KIND_DATA || in->prefix.kind == SUPERPIPE_KIND_EARLY)
        return take_data(in, r, data, len) && in->bytes > 0;
    return r->len == 0 && len == 0;
}

bool superpipe_decode(superpipe_incoming_t *in, const void *header, size_t header_len,
                      const void *data, size_t len, bool meets)
{
    reader_t r = {.at = header, .len = header_len};

    memset(in, 0, sizeof(*in));
    if (!take(&r, &in->prefix, sizeof(in->prefix)) || in->prefix.kind == SUPERPIPE_KIND_SHORT ||
        in->prefix.kind >= SUPERPIPE_KINDS || (meets && in->prefix.kind != SUPERPIPE_KIND_DATA))
        return false;
    return in->prefix.kind == SUPERPIPE_KIND_RTS ? decode_rts(in, &r, data, len)
                                                 : decode_word(in, &r, data, len);
}
