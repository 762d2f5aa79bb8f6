/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Flow control and remote completion; see flow.h.
 *
 * Why an origin never stays blocked. Let all messages and acknowledgements have arrived and let
 * each acknowledgement that was due have been sent. Then `acked` equals the target's `reported`.
 * Were the origin at a full window, the target would have applied a whole window since its last
 * report; but it reports after half of that, rounded up and so at least one message. And were a
 * flush open, `wanted` would have been reached without a report, which rx_applied or rx_flush,
 * whichever came last, does not let happen.
 *
 * The counters count messages, they do not name them: where messages overtake each other, acked ==
 * n says that some n of them are applied. Only acked == sent (tx_idle) says it of all of them.
 */
#include "osc_nicstride/flow.h"

bool nicstride_tx_can_send(const nicstride_tx_t *tx)
{
    return tx->sent - tx->acked < tx->window;
}

uint64_t nicstride_tx_send(nicstride_tx_t *tx)
{
    return ++tx->sent;
}

bool nicstride_tx_ack(nicstride_tx_t *tx, uint64_t applied, int error)
{
    if (applied > tx->sent)
        return false;
    if (applied > tx->acked)
        tx->acked = applied;
    if (tx->error == 0)
        tx->error = error;
    return true;
}

bool nicstride_tx_idle(const nicstride_tx_t *tx)
{
    return tx->acked == tx->sent;
}

bool nicstride_tx_ask(nicstride_tx_t *tx, uint64_t *upto_p)
{
    if (nicstride_tx_idle(tx) || tx->asked == tx->sent)
        return false;
    tx->asked = tx->sent;
    *upto_p = tx->sent;
    return true;
}

int nicstride_tx_take_error(nicstride_tx_t *tx)
{
    const int error = tx->error;

    tx->error = 0;
    return error;
}

/* A flush is answered by any report that reaches its number. */
static bool flush_due(const nicstride_rx_t *rx)
{
    return rx->wanted > rx->reported && rx->applied >= rx->wanted;
}

bool nicstride_rx_applied(nicstride_rx_t *rx, int error)
{
    const uint32_t half = rx->window - rx->window / 2;

    rx->applied++;
    if (rx->error == 0)
        rx->error = error;
    return rx->applied - rx->reported >= half || flush_due(rx);
}

bool nicstride_rx_flush(nicstride_rx_t *rx, uint64_t upto)
{
    if (upto <= rx->reported)
        return false; /* the report that says so is on its way */
    if (upto - rx->reported > rx->window)
        return false; /* more than the origin may have sent: forged */
    if (upto > rx->wanted)
        rx->wanted = upto;
    return flush_due(rx);
}

void nicstride_rx_ack(nicstride_rx_t *rx, uint64_t *applied_p, int *error_p)
{
    *applied_p = rx->applied;
    *error_p = rx->error;
    rx->reported = rx->applied;
    rx->error = 0;
}
