/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Info keys of windows.
 */
#include <string.h>

#include "osc_nicstride/window/place.h"
#include "osc_nicstride/window/window.h"

/** Hints that do not change while the window lives: the value given at creation is kept. */
static ONIC_INFO_CHAR *info_bool(opal_infosubscriber_t *object, ONIC_INFO_CHAR *key,
                                 ONIC_INFO_CHAR *value)
{
    (void)object;
    (void)key;
    return (strcmp(value, "true") == 0 || strcmp(value, "yes") == 0 || strcmp(value, "1") == 0)
               ? "true"
               : "false";
}

static ONIC_INFO_CHAR *info_no_locks(opal_infosubscriber_t *object, ONIC_INFO_CHAR *key,
                                     ONIC_INFO_CHAR *value)
{
    nicstride_module_t *m = nicstride_module((ompi_win_t *)object);

    (void)key;
    (void)value;
    /* Locks cannot come back once the queues were left out, so a change is not taken. */
    return m != NULL && m->no_locks ? "true" : "false";
}

static ONIC_INFO_CHAR *info_ordering(opal_infosubscriber_t *object, ONIC_INFO_CHAR *key,
                                     ONIC_INFO_CHAR *value)
{
    static ONIC_INFO_CHAR *const order = "rar,raw,war,waw";

    (void)object;
    (void)key;
    (void)value;
    /* All accumulates are ordered, which satisfies every weaker order. */
    return order;
}

static ONIC_INFO_CHAR *info_ops(opal_infosubscriber_t *object, ONIC_INFO_CHAR *key,
                                ONIC_INFO_CHAR *value)
{
    (void)object;
    (void)key;
    return strcmp(value, "same_op") == 0 ? "same_op" : "same_op_no_op";
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
    static const struct {
        ONIC_INFO_CHAR *key;
        ONIC_INFO_CHAR *value;
        opal_key_interest_callback_t *fn;
    } keys[] = {
        {"no_locks", "false", info_no_locks},
        {"accumulate_ordering", "rar,raw,war,waw", info_ordering},
        {"accumulate_ops", "same_op_no_op", info_ops},
        {"same_size", "false", info_bool},
        {"same_disp_unit", "false", info_bool},
        {"alloc_shared_noncontig", "false", info_bool},
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        int rc = opal_infosubscribe_subscribe(&win->super, keys[i].key, keys[i].value, keys[i].fn);

        if (rc != OPAL_SUCCESS)
            return rc;
    }
    return OMPI_SUCCESS;
}
