/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The state of the component, and its texts for failing calls. */
#include "osc_nicstride/window/state.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/support/help.h"
#include "osc_nicstride/window/module.h"

#include "opal/util/output.h"

nicstride_component_t nicstride_component;
nicstride_counters_t nicstride_counters;

/* A program that continues after errors (MPI_ERRORS_RETURN) may make thousands of them. The texts
 * do not go through opal_show_help, which drops texts that come too fast. */
#define TEXTS_MAX 16

int nicstride_error(const nicstride_module_t *m, const char *call, int error, const char *format,
                    ...)
{
    static _Atomic unsigned texts;
    unsigned shown = atomic_fetch_add(&texts, 1);
    char reason[384];
    va_list args;

    if (shown >= TEXTS_MAX)
        return error;
    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    opal_output(0, "%s failed in rank %d of window \"%s\": %s%s", call, m->rank,
                ONIC_NAME(m->win->w_name), reason,
                shown + 1 == TEXTS_MAX ? " (further errors are returned without text)" : "");
    return error;
}

int nicstride_sync_error(const nicstride_module_t *m, const char *call, const char *wrong,
                         int target)
{
    if (target >= 0)
        return nicstride_error(m, call, OMPI_ERR_RMA_SYNC, "%s (target rank %d)", wrong, target);
    return nicstride_error(m, call, OMPI_ERR_RMA_SYNC, "%s", wrong);
}

int nicstride_select_error(int rc, const char *reason)
{
    onic_help(NICSTRIDE_HELP_FILE, "select-error", reason);
    return rc;
}
