/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Which method moves a transfer: gathers what the plan (plan.h) has to know, and says why.
 */
#ifndef NICSTRIDE_CHOOSE_H
#define NICSTRIDE_CHOOSE_H

#include <stdbool.h>

#include "osc_nicstride/protocol/method.h"
#include "osc_nicstride/window/transfer.h"

/** Chooses the method for a put or a get; t->cell becomes where its cost is to be noted. Where the
 *  choice is settled this takes no lock. */
nicstride_method_t nicstride_choose(nicstride_transfer_t *t);

/** Does an accumulate that fetches nothing, and that the target applies, go through slots, and not
 *  in messages? Its type is NICSTRIDE_MSG_ACC. By the model alone: nothing is learned from it. */
bool nicstride_accumulates_by_mover(const nicstride_transfer_t *t);

#endif
