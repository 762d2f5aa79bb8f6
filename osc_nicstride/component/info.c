/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Info keys of windows. */
#include <string.h>

#include "osc_nicstride/window/place.h"
#include "osc_nicstride/component/setup.h"

/** What a window shows for a key: hints that do not change while it lives. All accumulates are
 *  ordered, which satisfies every weaker order; locks cannot come back. */
static ONIC_INFO_CHAR *show(opal_infosubscriber_t *object, ONIC_INFO_CHAR *key,
                            ONIC_INFO_CHAR *value)
{
    const nicstride_module_t *m = nicstride_module((ompi_win_t *)object);

    if (strcmp(key, "accumulate_ordering") == 0)
        return "rar,raw,war,waw";
    if (strcmp(key, "accumulate_ops") == 0)
        return strcmp(value, "same_op") == 0 ? "same_op" : "same_op_no_op";
    if (strcmp(key, "no_locks") == 0)
        return m != NULL && m->no_locks ? "true" : "false";
    return strcmp(value, "true") == 0 || strcmp(value, "yes") == 0 || strcmp(value, "1") == 0
               ? "true"
               : "false";
}

bool nicstride_info_bool(opal_info_t *info, const char *key)
{
    bool value = false;
    int found = 0;

    if (info != NULL)
        opal_info_get_bool(info, (char *)key, &value, &found);
    return found && value;
}

bool nicstride_info_pages(opal_info_t *info)
{
    char value[32] = "";
    int found = 0;

    if (info != NULL)
        ONIC_INFO_GET(info, "mpi_minimum_memory_alignment", (int)sizeof(value) - 1, value, &found);
    return found && nicstride_wants_pages(value);
}

int nicstride_subscribe_info(ompi_win_t *win)
{
    static ONIC_INFO_CHAR *const keys[][2] = {{"no_locks", "false"},
                                              {"accumulate_ordering", "rar,raw,war,waw"},
                                              {"accumulate_ops", "same_op_no_op"},
                                              {NICSTRIDE_SINGLE_INTRINSIC, "false"},
                                              {"same_size", "false"},
                                              {"same_disp_unit", "false"},
                                              {"alloc_shared_noncontig", "false"}};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        int rc = opal_infosubscribe_subscribe(&win->super, keys[i][0], keys[i][1], show);

        if (rc != OPAL_SUCCESS)
            return rc;
    }
    return OMPI_SUCCESS;
}
