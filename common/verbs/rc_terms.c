/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the sides of a connection tell each other; see rc_terms.h. */
#include "common/verbs/rc_terms.h"

#include "common/support/bytes.h"

/* Behind the address; two bytes that are 0 stand before the key. */
enum {
    AT_MTU = ONIC_VERBS_ADDRESS_SIZE,
    AT_READS = AT_MTU + 1,
    AT_ZERO = AT_READS + 1,
    AT_KEY = AT_ZERO + 2,
    AT_MARK = AT_KEY + 4
};

_Static_assert(AT_MARK + 8 == ONIC_RC_TERMS_SIZE, "the size of the encoded form");

enum { MTU_MIN = 1, MTU_MAX = 5 };

void onic_rc_terms_encode(const onic_rc_terms_t *t, unsigned char bytes[ONIC_RC_TERMS_SIZE])
{
    onic_verbs_address_encode(&t->address, bytes);
    bytes[AT_MTU] = t->mtu;
    bytes[AT_READS] = t->reads;
    onic_put16(bytes + AT_ZERO, 0);
    onic_put32(bytes + AT_KEY, t->mark_key);
    onic_put64(bytes + AT_MARK, t->mark);
}

const char *onic_rc_terms_decode(const void *bytes, size_t len, onic_rc_terms_t *t)
{
    const unsigned char *b = bytes;

    if (len != ONIC_RC_TERMS_SIZE)
        return "not the size of a connection's terms";
    const char *wrong = onic_verbs_address_decode(b, ONIC_VERBS_ADDRESS_SIZE, &t->address);

    if (wrong != NULL)
        return wrong;
    t->mtu = b[AT_MTU];
    t->reads = b[AT_READS];
    t->mark_key = onic_get32(b + AT_KEY);
    t->mark = onic_get64(b + AT_MARK);
    if (t->mtu < MTU_MIN || t->mtu > MTU_MAX)
        return "a packet's length that cannot be";
    return onic_get16(b + AT_ZERO) != 0 ? "padding that is not zero" : NULL;
}

void onic_rc_terms_agree(onic_rc_terms_t *mine, const onic_rc_terms_t *theirs)
{
    mine->mtu = mine->mtu < theirs->mtu ? mine->mtu : theirs->mtu;
    mine->reads = mine->reads < theirs->reads ? mine->reads : theirs->reads;
}
