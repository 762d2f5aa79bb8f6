/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Asking targets for keys (window/keys.h). Nobody waits for the answer. Wire lock.
 */
#ifndef NICSTRIDE_ASK_KEYS_H
#define NICSTRIDE_ASK_KEYS_H

#include "osc_nicstride/window/keys.h"

/**
 * The key of a row for the byte `at` of the target's window, with the region that it is good for.
 * NULL: there is none. Then the target has been asked for one, unless it has refused, and will be
 * for those of all bytes up to `end`, which the caller needs, too: one after the other, so that it
 * registers one piece at a time and serves others in between.
 */
void *nicstride_key_locked(nicstride_peer_t *p, nicstride_method_t row, uint64_t at, uint64_t end,
                           nicstride_span_t *span);

/** The target has told: asks it for the next of the bytes that were asked for. */
void nicstride_ask_on_locked(nicstride_peer_t *p);

/** The same for the word that counts the generations of a dynamic window; NULL: there is none. */
void *nicstride_word_key_locked(nicstride_peer_t *p, nicstride_method_t row);

/** Sends keys: the question for a place, or the answer, as `what` says. */
typedef enum nicstride_keys_what { NICSTRIDE_KEYS_ASK, NICSTRIDE_KEYS_TELL } nicstride_keys_what_t;
void nicstride_send_keys_locked(nicstride_peer_t *p, nicstride_keys_what_t what, uint64_t at,
                                const nicstride_keys_t *k);

#endif
