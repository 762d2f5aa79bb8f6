/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/unit/pml_naive.h"

#include <string.h>

#include "test/unit/unit.h"

static void append(naive_list_t *list, naive_item_t item)
{
    UNIT_CHECK(list->n < NAIVE_MOST);
    list->at[list->n++] = item;
}

bool naive_take(naive_list_t *list, int id)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->at[i].id == id) {
            list->n--;
            memmove(&list->at[i], &list->at[i + 1], (list->n - i) * sizeof(list->at[0]));
            return true;
        }
    }
    return false;
}

static bool matches(int32_t wanted_source, int32_t wanted_tag, const naive_item_t *message)
{
    if (wanted_source != NAIVE_ANY && wanted_source != message->source)
        return false;
    return wanted_tag == NAIVE_ANY ? message->tag >= 0 : wanted_tag == message->tag;
}

int naive_find(const naive_comm_t *c, int32_t source, int32_t tag)
{
    for (size_t i = 0; i < c->unexpected.n; i++)
        if (matches(source, tag, &c->unexpected.at[i]))
            return c->unexpected.at[i].id;
    return NAIVE_NONE;
}

int naive_post(naive_comm_t *c, naive_item_t receive)
{
    const int message = naive_find(c, receive.source, receive.tag);

    if (message == NAIVE_NONE)
        append(&c->posted, receive);
    else
        (void)naive_take(&c->unexpected, message);
    return message;
}

int naive_arrive(naive_comm_t *c, naive_item_t message)
{
    for (size_t i = 0; i < c->posted.n; i++) {
        const naive_item_t receive = c->posted.at[i];

        if (matches(receive.source, receive.tag, &message)) {
            (void)naive_take(&c->posted, receive.id);
            return receive.id;
        }
    }
    append(&c->unexpected, message);
    return NAIVE_NONE;
}
