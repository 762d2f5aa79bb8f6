/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Texts of errors in calls on a window.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "osc_nicstride/module.h"

#include "opal/util/show_help.h"

int nicstride_error(const nicstride_module_t *m, const char *call, int error, const char *format,
                    ...)
{
    char reason[256];
    va_list args;

    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    opal_show_help("help-osc-nicstride.txt", "call-error", true, call, m->rank, m->win->w_name,
                   reason);
    return error;
}

const char *nicstride_hostname(void)
{
    static char name[256];

    if (name[0] == '\0' && gethostname(name, sizeof(name) - 1) != 0)
        return "unknown";
    return name;
}
