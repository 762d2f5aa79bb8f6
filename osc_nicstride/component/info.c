/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Info keys of windows: what the program asked for when the window was made, and what the
 *  window reports as in force. Hints that are set later change nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "osc_nicstride/component/setup.h"
#include "osc_nicstride/protocol/discipline.h"
#include "osc_nicstride/window/place.h"
#include "osc_nicstride/window/state.h"

bool nicstride_info_bool(opal_info_t *info, const char *key)
{
    bool value = false;
    int found = 0;

    if (info != NULL)
        opal_info_get_bool(info, (char *)key, &value, &found);
    return found && value;
}

/** Gets the text of a key. False, and an empty text, if it is not given. `room` is the size of
 *  `value`, with the final zero byte. */
static bool text_of(opal_info_t *info, const char *key, char *value, size_t room)
{
    int found = 0;

    value[0] = '\0';
    if (info != NULL)
        ONIC_INFO_GET(info, key, (int)room - 1, value, &found);
    return found != 0;
}

/* ---- what is in force ------------------------------------------------------------------------ */

static ONIC_INFO_CHAR *flag(bool value)
{
    return value ? "true" : "false";
}

static bool is_true(const char *value)
{
    return strcmp(value, "true") == 0 || strcmp(value, "yes") == 0 || strcmp(value, "1") == 0;
}

/** The value that a window shows for a key. All accumulates are ordered, which satisfies every
 *  weaker order, and any operations may overlap. */
static ONIC_INFO_CHAR *show(opal_infosubscriber_t *object, ONIC_INFO_CHAR *key,
                            ONIC_INFO_CHAR *value)
{
    static _Thread_local char number[24];
    const nicstride_module_t *m = nicstride_module((ompi_win_t *)object);

    if (strcmp(key, "accumulate_ordering") == 0)
        return "rar,raw,war,waw";
    if (strcmp(key, "accumulate_ops") == 0)
        return strcmp(value, "same_op") == 0 ? "same_op" : "same_op_no_op";
    if (m == NULL)
        return value;
    if (strcmp(key, "no_locks") == 0)
        return flag(m->no_locks);
    if (strcmp(key, "mpi_accumulate_granularity") == 0) {
        snprintf(number, sizeof(number), "%" PRIu32, nicstride_info(m, m->rank)->granularity);
        return number;
    }
    return flag(is_true(value));
}

/** Open MPI 4.1 keeps what the program asked for beside what is in force, and MPI_Win_get_info
 *  would return what was asked for. Values that are set later are still returned as they were
 *  set. */
static void forget_asked(ompi_win_t *win, const char *key)
{
#if OMPI_MAJOR_VERSION < 5
    char kept[OPAL_MAX_INFO_KEY];

    snprintf(kept, sizeof(kept), OPAL_INFO_SAVE_PREFIX "%s", key);
    (void)opal_info_delete(win->super.s_info, kept);
#else
    (void)win;
    (void)key;
#endif
}

int nicstride_subscribe_info(ompi_win_t *win)
{
    static ONIC_INFO_CHAR *const keys[][2] = {{"no_locks", "false"},
                                              {"accumulate_ordering", "rar,raw,war,waw"},
                                              {"accumulate_ops", "same_op_no_op"},
                                              {"mpi_accumulate_granularity", "0"},
                                              {"same_size", "false"},
                                              {"same_disp_unit", "false"},
                                              {"alloc_shared_noncontig", "false"}};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        int rc = opal_infosubscribe_subscribe(&win->super, keys[i][0], keys[i][1], show);

        if (rc != OPAL_SUCCESS)
            return rc;
        forget_asked(win, keys[i][0]);
    }
    return OMPI_SUCCESS;
}

/* ---- what the program asked for -------------------------------------------------------------- */

/** True if the program wants memory aligned to more than a cache line. */
static bool wants_pages(opal_info_t *info)
{
    char value[32];

    return text_of(info, "mpi_minimum_memory_alignment", value, sizeof(value)) &&
           nicstride_wants_pages(value);
}

int32_t nicstride_memory_wants(const nicstride_module_t *m, opal_info_t *info)
{
    int32_t wishes = wants_pages(info) ? NICSTRIDE_WANTS_PAGES : 0;

    if (m->flavor == MPI_WIN_FLAVOR_SHARED && !nicstride_info_bool(info, "alloc_shared_noncontig"))
        wishes |= NICSTRIDE_WANTS_CONTIGUOUS;
    return wishes;
}

uint32_t nicstride_info_granularity(opal_info_t *info)
{
    char value[32], *end;

    if (!text_of(info, "mpi_accumulate_granularity", value, sizeof(value)))
        return 0;
    const unsigned long long bytes = strtoull(value, &end, 10);

    if (value[0] == '\0' || value[0] == '-' || *end != '\0')
        return 0;
    return bytes > NICSTRIDE_GRANULARITY_MAX ? NICSTRIDE_GRANULARITY_MAX : (uint32_t)bytes;
}

nicstride_promises_t nicstride_info_promises(opal_info_t *info)
{
    char ops[32], order[64];
    const bool ordering = text_of(info, "accumulate_ordering", order, sizeof(order));

    return (nicstride_promises_t){.same_op = text_of(info, "accumulate_ops", ops, sizeof(ops)) &&
                                             strcmp(ops, "same_op") == 0,
                                  .ordered = !ordering || strstr(order, "waw") != NULL};
}
