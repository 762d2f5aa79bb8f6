/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/verbs/rc_terms.h"

#include <string.h>

_Static_assert(sizeof(onic_rc_terms_t) == sizeof(onic_verbs_address_t) + 16, "it has no gaps");

enum { MTU_MIN = 1, MTU_MAX = 5 };

const char *onic_rc_terms_read(const void *bytes, size_t len, onic_rc_terms_t *t)
{
    if (len != sizeof(*t))
        return "not the size of a connection's terms";
    memcpy(t, bytes, sizeof(*t));
    if (t->mtu < MTU_MIN || t->mtu > MTU_MAX || t->zero != 0)
        return "terms that cannot be";
    return onic_verbs_address_read(bytes, sizeof(t->address), &t->address);
}

void onic_rc_terms_agree(onic_rc_terms_t *mine, const onic_rc_terms_t *theirs)
{
    mine->mtu = mine->mtu < theirs->mtu ? mine->mtu : theirs->mtu;
    mine->reads = mine->reads < theirs->reads ? mine->reads : theirs->reads;
}
