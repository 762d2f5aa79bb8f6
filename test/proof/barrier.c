/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers: datagrams from anywhere, and any word for the rule. */
#include "test/proof/proof.h"

#include "coll_nicbarrier/engines/datagram/wire/packet.c"
#include "coll_nicbarrier/epoch/rule.h"
#include "coll_nicbarrier/engines/datagram/udp_address.c"
#include "coll_nicbarrier/schedule/schedule.h"

/** What is let through is in its ranges, and is the same packet when it is written again.
 *  unwind: 41 */
void proof_barrier_packet(void)
{
    const size_t len = any_length(NICBARRIER_PACKET_SIZE + 8);
    unsigned char *bytes = any_bytes(len), again[NICBARRIER_PACKET_SIZE];
    nicbarrier_packet_t p;

    if (!nicbarrier_packet_decode(bytes, len, &p))
        return;
    PROVE(p.kind > 0 && p.kind < NICBARRIER_PACKET_KINDS);
    PROVE(p.at < NICBARRIER_STEPS_MAX && p.from_at < NICBARRIER_STEPS_MAX);
    PROVE(p.sender <= INT32_MAX && p.to <= INT32_MAX);
    nicbarrier_packet_encode(&p, again);
    const size_t at = any_length(NICBARRIER_PACKET_SIZE - 1);
    PROVE(again[at] == bytes[at]);
}

/** Any state that the rule's numbers may have, any step, any word: nothing goes back, and nothing
 *  is complete that was not entered. unwind: 6 */
void proof_barrier_rule(void)
{
    nicbarrier_rule_t r;
    const uint32_t k = any_32(), i = any_32();

    ASSUME(r.nsteps <= 4 && i < NICBARRIER_RULE_STEPS && r.completed <= r.entered);
    ASSUME(r.entered < NICBARRIER_WORD_FAILED / 2);
    const uint64_t completed = r.completed, received = r.received[i], sent = r.sent[i];
    const uint8_t failed = r.failed;
    (void)nicbarrier_rule_receive(&r, k, any_64());
    (void)nicbarrier_rule_word(&r, k);
    (void)nicbarrier_rule_advance(&r);
    PROVE(r.completed >= completed && r.completed <= r.entered);
    PROVE(r.received[i] >= received && r.sent[i] >= sent && r.failed >= failed);
}

/** Any record of a partner's addresses, and any of one's own: where packets go first is one that
 *  the partner has told, or the host itself. unwind: 9 */
void proof_barrier_address(void)
{
    const size_t len = any_length(sizeof(nicbarrier_udp_address_t) + 4);
    unsigned char *bytes = any_bytes(len);
    nicbarrier_udp_address_t theirs, mine;
    bool told = false;

    ASSUME(mine.n <= NICBARRIER_IPS_MAX);
    if (nicbarrier_udp_address_decode(bytes, len, &theirs) != NULL)
        return;
    PROVE(theirs.n > 0 && theirs.n <= NICBARRIER_IPS_MAX &&
          len == nicbarrier_udp_address_size(&theirs) && theirs.port != 0);
    const nicbarrier_address_t to = nicbarrier_udp_address_choose(&mine, &theirs);
    for (int i = 0; i < theirs.n; i++)
        told = told || theirs.ip[i].ip == to.ip;
    PROVE((told || to.ip == htonl(INADDR_LOOPBACK)) && to.port == theirs.port);
}
