/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A kernel that the process plays; see fake_kernel.h. */
#include "test/unit/fake_kernel.h"

#include <stdlib.h>

#include "coll_nicbarrier/engines/datagram/state.h"

fake_kernel_t fake_kernel;

typedef struct group {
    nicbarrier_bpf_page_t page; /* first: the client knows the group by it */
    nicbarrier_net_t *net;
    unsigned asked;
} group_t;

static group_t *group_of(const nicbarrier_bpf_client_t *c)
{
    return (group_t *)(void *)c->page;
}

int nicbarrier_bpf_client_install(nicbarrier_bpf_client_t *c, const nicbarrier_bpf_id_t *id,
                                  const nicbarrier_bpf_page_t *first, const char *interface,
                                  nicbarrier_address_t by, nicbarrier_reason_t *why)
{
    (void)interface, (void)by;
    group_t *g = fake_kernel.absent ? NULL : calloc(1, sizeof(*g));
    if (g == NULL)
        return nicbarrier_reason(why, "there is no such kernel");
    g->page = *first;
    nicbarrier_datagram_lock();
    g->net = nicbarrier_datagram_find(id->key);
    nicbarrier_datagram_unlock();
    c->page = &g->page;
    return 0;
}

static bool ends(group_t *g)
{
    return fake_kernel.ends_at != 0 && ++g->asked >= fake_kernel.ends_at;
}

static bool advance(group_t *g)
{
    nicbarrier_rule_t *r = &g->page.rule;
    const uint64_t out = nicbarrier_rule_advance(r);
    for (uint32_t k = 0; out >> k != 0; k++)
        if (out >> k & 1)
            nicbarrier_datagram_send(g->net, NICBARRIER_PACKET_EPOCH, k,
                                     nicbarrier_rule_word(r, k));
    __atomic_store_n(&g->page.word, r->completed | (r->failed ? NICBARRIER_WORD_FAILED : 0),
                     __ATOMIC_SEQ_CST);
    return true;
}

bool nicbarrier_bpf_client_enter(nicbarrier_bpf_client_t *c, uint64_t epoch)
{
    group_t *g = group_of(c);
    if (ends(g))
        return false;
    nicbarrier_rule_enter(&g->page.rule, epoch);
    return advance(g);
}

bool nicbarrier_bpf_client_take(nicbarrier_bpf_client_t *c, uint32_t k, uint64_t word)
{
    group_t *g = group_of(c);
    if (ends(g))
        return false;
    if (nicbarrier_rule_receive(&g->page.rule, k, word) == NICBARRIER_WORD_NEW)
        g->page.taken++;
    return advance(g);
}

void nicbarrier_bpf_client_snapshot(const nicbarrier_bpf_client_t *c, nicbarrier_rule_t *rule)
{
    *rule = c->page->rule;
}

void nicbarrier_bpf_client_stop(nicbarrier_bpf_client_t *c)
{
    (void)c;
}

void nicbarrier_bpf_client_close(nicbarrier_bpf_client_t *c)
{
    free(group_of(c));
}
