/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file One handler for each kind of message. */
#include "pml_superpipe/protocols/process.h"

superpipe_counters_t superpipe_counters;
superpipe_process_t superpipe;

void superpipe_arrived(onic_peer_t *from, const void *header, size_t header_len, const void *data,
                       size_t len, onic_rndv_t *rndv)
{
    superpipe_peer_t *p = superpipe_peer_locked(from);
    superpipe_incoming_t in;
    bool good = p != NULL && superpipe_decode(&in, header, header_len, data, len, rndv != NULL);

    if (!good) {
        if (rndv != NULL)
            onic_rndv_drop(rndv);
        if (p != NULL)
            superpipe_break_locked(p, "a process has sent a message of an unknown form");
        else
            onic_peer_give_up(from);
        return;
    }
    switch ((superpipe_kind_t)in.prefix.kind) {
    case SUPERPIPE_EAGER:
    case SUPERPIPE_ANNOUNCE:
        superpipe_on_envelope_locked(p, &in);
        break;
    case SUPERPIPE_ASK:
        superpipe_on_ask_locked(p, &in);
        break;
    case SUPERPIPE_DATA:
        superpipe_on_data_locked(p, &in, rndv);
        break;
    case SUPERPIPE_DONE:
        superpipe_on_done_locked(p, &in);
        break;
    case SUPERPIPE_FAILED:
        superpipe_on_failed_locked(p, &in);
        break;
    case SUPERPIPE_LIMIT:
        p->me = (uint32_t)in.handle;
        superpipe_on_limit_locked(p, in.value);
        break;
    case SUPERPIPE_RECALL:
        superpipe_say_locked(p, SUPERPIPE_GIVE, 0,
                             superpipe_credit_give_back(&p->credit, in.value));
        break;
    case SUPERPIPE_GIVE:
        if (superpipe_pool_given_back(&superpipe.pool, &p->sender, in.value))
            break;
        superpipe_break_locked(p, "a process has given back what it has not got");
        break;
    case SUPERPIPE_EARLY:
        superpipe_on_early_locked(p, &in);
        break;
    case SUPERPIPE_KEPT:
        superpipe_on_kept_locked(p, &in);
        break;
    case SUPERPIPE_CALL:
        superpipe_on_call_locked(p, &in);
        break;
    case SUPERPIPE_WANT:
        superpipe_on_want_locked(p, &in);
        break;
    case SUPERPIPE_GONE:
        superpipe_on_gone_locked(p, &in);
        break;
    case SUPERPIPE_LEAVES:
        p->left = true;
        break;
    case SUPERPIPE_KINDS:
        break;
    }
}
