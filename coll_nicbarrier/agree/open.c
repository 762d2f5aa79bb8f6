/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll_nicbarrier/agree/open.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_open[NICBARRIER_ENGINES_MAX];

int nicbarrier_engine_open(int engine, const nicbarrier_engine_settings_t *settings,
                           nicbarrier_reason_t *why)
{
    pthread_mutex_lock(&lock);
    if (!is_open[engine]) {
        is_open[engine] = nicbarrier_engines[engine]->open(settings, why) == 0;
    }
    const bool done = is_open[engine];
    pthread_mutex_unlock(&lock);
    return done ? 0 : -1;
}

void nicbarrier_engines_close(void)
{
    for (int i = 0; nicbarrier_engines[i] != NULL; i++) {
        if (is_open[i]) {
            nicbarrier_engines[i]->close();
            is_open[i] = false;
        }
    }
}
