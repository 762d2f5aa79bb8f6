/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Whether process_vm_readv reaches a process nothing but trying can tell, so every process
 *  publishes where it keeps a random number: another one that can read it can read the right
 *  process. */
#define _GNU_SOURCE
#include "common/transport/shm/neighbour.h"
#include "common/transport/row/row.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

onic_here_t onic_here;

/** Without an identity no process will try to reach this one. */
static void identify(onic_cma_id_t *id, uint64_t *nonce)
{
    memset(id, 0, sizeof(*id));
    id->life = onic_life_mine();
    if (id->life.pid_namespace == 0 ||
        getrandom(nonce, sizeof(*nonce), 0) != (ssize_t)sizeof(*nonce))
        return;
    (void)onic_file_text(ONIC_BOOT_ID, id->host, sizeof(id->host));
    id->nonce_at = (uint64_t)(uintptr_t)nonce;
    id->nonce = *nonce;
}

void onic_here_start(void)
{
    identify(&onic_here.id, &onic_here.nonce);
    onic_here.wake_pipe = onic_wake_pipe_open();
    onic_here.id.wake = onic_file_offer(onic_here.wake_pipe);
}

void onic_here_stop(void)
{
    onic_wake_pipe_close(onic_here.wake_pipe);
}

void onic_cma_allow(void)
{
    static bool allowed;
    /* Where Yama (kernel.yama.ptrace_scope 1) lets only ancestors attach, single copy needs this.
     * It allows it to debuggers, too, so it is not said without need. */
    if (!allowed) {
        allowed = true;
        (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    }
}

/** Reads the peer's nonce, through an interruption by a signal. */
static bool nonce_matches(const onic_cma_id_t *id)
{
    uint64_t value = 0;
    struct iovec local = {&value, sizeof(value)};
    struct iovec remote = {(void *)(uintptr_t)id->nonce_at, sizeof(value)};
    ssize_t n;
    do {
        n = process_vm_readv((pid_t)id->life.pid, &local, 1, &remote, 1, 0);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(value) && value == id->nonce;
}

bool onic_same_place(const onic_cma_id_t *a, const onic_cma_id_t *b)
{
    return a->host[0] != '\0' && memcmp(a->host, b->host, sizeof(a->host)) == 0 &&
           a->life.pid_namespace == b->life.pid_namespace &&
           a->life.time_namespace == b->life.time_namespace;
}

bool onic_peer_can_cma(onic_peer_t *peer)
{
    if (peer->cma == ONIC_CMA_UNKNOWN) {
        bool can = onic_same_place(&peer->cma_id, &onic_here.id) && nonce_matches(&peer->cma_id);
        peer->cma = can ? ONIC_CMA_YES : ONIC_CMA_NO;
    }
    return peer->cma == ONIC_CMA_YES;
}

onic_refused_t onic_peer_copy(const onic_peer_t *peer, bool write, const struct iovec *here,
                              unsigned nhere, const struct iovec *there, unsigned nthere,
                              uint64_t bytes)
{
    const pid_t pid = (pid_t)peer->cma_id.life.pid;
    ssize_t n;

    do {
        n = write ? process_vm_writev(pid, here, nhere, there, nthere, 0)
                  : process_vm_readv(pid, here, nhere, there, nthere, 0);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)bytes ? ONIC_REFUSED_NOT : onic_refused_by(n < 0 ? errno : 0);
}

pid_t onic_peer_pid(onic_peer_t *peer)
{
    return onic_same_place(&peer->cma_id, &onic_here.id) ? (pid_t)peer->cma_id.life.pid : -1;
}

/* ---- its page and its pipe ----------------------------------------------------------------- */

const onic_presence_t *onic_peer_presence(onic_peer_t *peer)
{
    return onic_peer_inbox(peer) != NULL ? &peer->inbox->presence : NULL;
}

onic_inbox_head_t *onic_peer_inbox(onic_peer_t *peer)
{
    if (!peer->looked_at) {
        peer->looked_at = true;
        if (!peer->self && onic_same_place(&peer->cma_id, &onic_here.id))
            peer->inbox = onic_inbox_map(&peer->queues);
        peer->wakes = peer->inbox != NULL && onic_wake_can(&peer->cma_id.wake);
    }
    return peer->inbox;
}

bool onic_peer_can_wake(onic_peer_t *peer)
{
    return onic_peer_inbox(peer) != NULL && peer->wakes &&
           atomic_load_explicit(&peer->inbox->presence.helped, memory_order_acquire);
}

void onic_peer_wake(const onic_peer_t *peer)
{
    onic_wake_peer(&peer->cma_id.wake);
}

void onic_peer_close_files(onic_peer_t *peer)
{
    if (peer->inbox != NULL)
        onic_inbox_unmap(peer->inbox, &peer->queues);
}
