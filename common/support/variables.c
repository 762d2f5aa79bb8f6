/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/support/variables.h"

#include <mpi.h>
#include <stdio.h>

#include "ompi/constants.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"

#include "common/support/help.h"

static int register_var(const mca_base_component_t *c, const char *name, const char *help,
                        mca_base_var_type_t type, void *value)
{
    return mca_base_component_var_register(c, name, help, type, NULL, 0, 0, OPAL_INFO_LVL_5,
                                           MCA_BASE_VAR_SCOPE_READONLY, value);
}

int onic_register_int(const mca_base_component_t *c, const char *name, const char *help, int min,
                      int max, int *value)
{
    char text[512];

    snprintf(text, sizeof(text), "%s. Range %d to %d", help, min, max);
    return register_var(c, name, text, MCA_BASE_VAR_TYPE_INT, value);
}

int onic_register_ranged(const mca_base_component_t *c, onic_ranged_t *p)
{
    return onic_register_int(c, p->name, p->help, p->min, p->max, &p->value);
}

int onic_register_bool(const mca_base_component_t *c, const char *name, bool initial, bool *value,
                       const char *help)
{
    *value = initial;
    return register_var(c, name, help, MCA_BASE_VAR_TYPE_BOOL, value);
}

int onic_register_string(const mca_base_component_t *c, const char *name, const char *initial,
                         const char **value, const char *help)
{
    /* Where MPI is initialized again Open MPI has put NULL there. */
    *value = initial;
    return register_var(c, name, help, MCA_BASE_VAR_TYPE_STRING, value);
}

int onic_check_ranged(const onic_ranged_t *p, size_t n, const char *help_file)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i].value < p[i].min || p[i].value > p[i].max) {
            onic_help(help_file, "bad-number", p[i].name, p[i].value, p[i].min, p[i].max);
            return OMPI_ERR_BAD_PARAM;
        }
    }
    return OMPI_SUCCESS;
}

int onic_register_counter(const mca_base_component_t *c, const char *name, const char *help,
                          int class, unsigned long long *counter)
{
    return mca_base_component_pvar_register(
        c, name, help, OPAL_INFO_LVL_4, class, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
        MPI_T_BIND_NO_OBJECT, MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, NULL,
        NULL, NULL, counter);
}
