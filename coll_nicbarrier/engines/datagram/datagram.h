/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram, inside: barriers over an unreliable network with receiver-driven retransmission
 * (Yu et al. 2004, section 6). What is decided stands in epoch/ and the pure files here: linger.h,
 * reach.h, packet.h, udp_address.h. From the bottom to the top:
 *
 *     transport.h     params.c, and the transports: udp.c (with interfaces.c), verbs_ud.c
 *     group.h         group.c: state, packets out, groups
 *     stepper.h       the steppers: stepper_host.c
 *     timers.c        requests and repetitions that are due, refusals, the end
 *     input.c         packets in
 *     thread.c        the helper thread, which stands in for the MPI threads
 *     connect.c       the engine's functions for groups
 *     datagram.c      its other functions, and the row
 *
 * UDP is always there, verbs where a device is. Each pair of partners that both have a port, of
 * which each can reach the other, uses verbs, the others UDP: reach.h.
 */
#ifndef NICBARRIER_DATAGRAM_H
#define NICBARRIER_DATAGRAM_H

#include <poll.h>

#include "coll_nicbarrier/engines/datagram/group.h"

/* ---- timers.c; the lock is held -------------------------------------------------------------- */

/** Sends what is due: NACKs, and repetitions of promised messages. */
void nicbarrier_datagram_expire(void);
/** Takes in what hosts have refused. */
void nicbarrier_datagram_take_refusals(void);
/** Stays until no peer needs this process any more (linger.h). There is no helper thread. Without
 *  the lock. */
void nicbarrier_datagram_linger(void);

/* ---- input.c --------------------------------------------------------------------------------- */

/**
 * Takes in what has come, and sends NACKs that are due. The lock is held.
 *
 * @param net  return at once when this one has completed something; NULL: when nothing is left
 * @return packets that brought something new
 */
int nicbarrier_datagram_receive(nicbarrier_net_t *net);
/** Prepares all transports for sleep; false where something has come. The lock is held. */
bool nicbarrier_datagram_arm(void);
/** Sleeps after that until something comes, a descriptor more (-1: none) becomes readable, or it is
 *  `until` (onic_now_nsec). Without the lock. */
void nicbarrier_datagram_sleep(int more, uint64_t until);

/* ---- thread.c; MPI threads ------------------------------------------------------------------- */

/** Starts it where there is none yet. @return 0, or an errno */
int nicbarrier_datagram_start_thread(void);
/** Joins it, if there is one. */
void nicbarrier_datagram_stop_thread(void);
/** The calling thread goes away: the helper thread takes over at once. */
void nicbarrier_datagram_hand_over(void);

/* ---- connect.c: functions of the engine, see engine.h ---------------------------------------- */

int nicbarrier_datagram_prepare(const nicbarrier_group_t *group, nicbarrier_net_t **net_p,
                                void *bytes, uint32_t *len_p, nicbarrier_reason_t *why);
int nicbarrier_datagram_connect(nicbarrier_net_t *net, const nicbarrier_endpoints_t *endpoints,
                                const nicbarrier_net_events_t *events, nicbarrier_reason_t *why);
bool nicbarrier_datagram_hopeless(nicbarrier_net_t *net, nicbarrier_reason_t *why);
void nicbarrier_datagram_disconnect(nicbarrier_net_t *net);

#endif
