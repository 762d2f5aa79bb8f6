/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Queue pairs of reliable connections: those of connections.c, and in general. */
#pragma once

#include "common/transport/verbs/connections.h"

/** Asks the port and its device what they can do: fills in `terms`, `limits` and `reads_served`,
 *  and makes `spec` no more than that. 0, or -1. */
int onic_rc_survey(onic_rc_adapter_t *a);

/** A queue pair that issues requests, and its limits; fewer pieces, and none carried, where the
 *  adapter does not give more. NULL where it cannot be had. */
struct ibv_qp *onic_rc_issuing_pair(const onic_rc_adapter_t *a, onic_rdma_limits_t *limits);

/** A queue pair that serves those of another process; as above. */
struct ibv_qp *onic_rc_serving_pair(const onic_rc_adapter_t *a);

/** Makes a new queue pair of the port, or NULL, one that can be connected, and by which the other
 *  side may do what `access` says. NULL where that cannot be: then it has been destroyed. */
ONIC_EXPORT struct ibv_qp *onic_rc_pair_ready(const onic_verbs_port_t *port, struct ibv_qp *qp,
                                              unsigned access);

/** Connects it with one that the other side has, on terms that both can do; `issues`: it is to send
 *  requests, else to serve reads. False where it cannot be. */
ONIC_EXPORT bool onic_rc_pair_connect(const onic_verbs_port_t *port, struct ibv_qp *qp,
                                      const onic_rc_terms_t *agreed, const onic_verbs_address_t *to,
                                      bool issues);
