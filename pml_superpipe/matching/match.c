/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Receives and messages; see match.h. */
#include "pml_superpipe/matching/match.h"

/** The list of a key. Sources and tags may be consecutive numbers or have any stride: a single
 *  multiplication would put some of them into the same list. */
static size_t list_of(uint32_t context, int32_t source, int32_t tag)
{
    uint64_t key = (uint64_t)(uint32_t)source << 32 | (uint32_t)tag;

    key = (key ^ key >> 32 ^ context) * UINT64_C(0x9e3779b97f4a7c15);
    key = (key ^ key >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return key >> (64 - SUPERPIPE_KEY_BITS);
}

static bool is_exact(int32_t source, int32_t tag)
{
    return source != SUPERPIPE_ANY_SOURCE && tag != SUPERPIPE_ANY_TAG;
}

static superpipe_receives_t *receives_of(superpipe_match_t *m, uint32_t context, int32_t source,
                                         int32_t tag)
{
    return &m->posted[is_exact(source, tag)
                          ? list_of(context, source, tag)
                          : SUPERPIPE_KEY_LISTS + context % SUPERPIPE_CONTEXT_LISTS];
}

/** True if a receive of that source and tag, or wildcards, takes a message. */
static bool takes(int32_t source, int32_t tag, int32_t message_source, int32_t message_tag)
{
    return (source == message_source || source == SUPERPIPE_ANY_SOURCE) &&
           (tag == message_tag || (tag == SUPERPIPE_ANY_TAG && message_tag >= 0));
}

void superpipe_match_init(superpipe_match_t *m)
{
    *m = (superpipe_match_t){.posts = 0};
    for (size_t i = 0; i < SUPERPIPE_KEY_LISTS + SUPERPIPE_CONTEXT_LISTS; i++)
        TAILQ_INIT(&m->posted[i]);
    for (size_t i = 0; i < SUPERPIPE_KEY_LISTS; i++)
        TAILQ_INIT(&m->by_key[i]);
    for (size_t i = 0; i < SUPERPIPE_CONTEXT_LISTS; i++)
        TAILQ_INIT(&m->by_context[i]);
}

/* ---- receives -------------------------------------------------------------------------------- */

/** The count of receives like this one. */
static uint64_t *count_of(superpipe_match_t *m, const superpipe_receive_t *receive)
{
    return is_exact(receive->source, receive->tag) ? &m->exact : &m->wildcards;
}

static void withdraw(superpipe_match_t *m, superpipe_receive_t *receive)
{
    --*count_of(m, receive);
    TAILQ_REMOVE(receive->list, receive, of_list);
    receive->list = NULL;
}

superpipe_message_t *superpipe_match_post(superpipe_match_t *m, superpipe_receive_t *receive,
                                          uint32_t context, int32_t source, int32_t tag)
{
    superpipe_message_t *message = superpipe_match_probe(m, context, source, tag);

    if (message != NULL) {
        superpipe_match_take(m, message);
        return message;
    }
    receive->context = context;
    receive->source = source;
    receive->tag = tag;
    receive->stamp = m->posts++;
    receive->list = receives_of(m, context, source, tag);
    TAILQ_INSERT_TAIL(receive->list, receive, of_list);
    ++*count_of(m, receive);
    return NULL;
}

bool superpipe_match_cancel(superpipe_match_t *m, superpipe_receive_t *receive)
{
    if (receive->list == NULL)
        return false;
    withdraw(m, receive);
    return true;
}

superpipe_receive_t *superpipe_match_abandon(superpipe_match_t *m, uint32_t context, int32_t source,
                                             size_t *cursor)
{
    superpipe_receive_t *receive;

    if (m->exact + m->wildcards == 0)
        return NULL;
    for (; *cursor < SUPERPIPE_KEY_LISTS + SUPERPIPE_CONTEXT_LISTS; ++*cursor)
        TAILQ_FOREACH(receive, &m->posted[*cursor], of_list)
            if (receive->context == context &&
                (receive->source == source || source == SUPERPIPE_ALL_RECEIVES)) {
                withdraw(m, receive);
                return receive;
            }
    return NULL;
}

/* ---- messages -------------------------------------------------------------------------------- */

/** The first receive of a list that takes the message, or NULL. */
static superpipe_receive_t *first_of(const superpipe_receives_t *list, uint32_t context,
                                     int32_t source, int32_t tag)
{
    superpipe_receive_t *receive;

    TAILQ_FOREACH(receive, list, of_list)
        if (receive->context == context && takes(receive->source, receive->tag, source, tag))
            break;
    return receive;
}

superpipe_receive_t *superpipe_match_message(superpipe_match_t *m, uint32_t context, int32_t source,
                                             int32_t tag)
{
    superpipe_receive_t *receive = NULL, *wild = NULL;

    if (m->exact > 0)
        receive = first_of(receives_of(m, context, source, tag), context, source, tag);
    if (m->wildcards > 0)
        wild = first_of(receives_of(m, context, SUPERPIPE_ANY_SOURCE, tag), context, source, tag);
    if (wild != NULL && (receive == NULL || wild->stamp < receive->stamp))
        receive = wild;
    if (receive != NULL)
        withdraw(m, receive);
    return receive;
}

void superpipe_match_keep(superpipe_match_t *m, superpipe_message_t *message)
{
    const size_t list = list_of(message->context, message->source, message->tag);

    TAILQ_INSERT_TAIL(&m->by_key[list], message, of_key);
    TAILQ_INSERT_TAIL(superpipe_match_arrived(m, message->context), message, of_context);
    m->unexpected++;
}

superpipe_message_t *superpipe_match_probe(superpipe_match_t *m, uint32_t context, int32_t source,
                                           int32_t tag)
{
    superpipe_message_t *message = NULL;

    if (m->unexpected == 0)
        return NULL;
    if (is_exact(source, tag)) {
        TAILQ_FOREACH(message, &m->by_key[list_of(context, source, tag)], of_key)
            if (message->context == context && message->source == source && message->tag == tag)
                break;
    } else {
        TAILQ_FOREACH(message, superpipe_match_arrived(m, context), of_context)
            if (message->context == context && takes(source, tag, message->source, message->tag))
                break;
    }
    return message;
}

void superpipe_match_take(superpipe_match_t *m, superpipe_message_t *message)
{
    const size_t list = list_of(message->context, message->source, message->tag);

    TAILQ_REMOVE(&m->by_key[list], message, of_key);
    TAILQ_REMOVE(superpipe_match_arrived(m, message->context), message, of_context);
    m->unexpected--;
}
