/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Receives and messages; see match.h. */
#include "pml_superpipe/matching/match.h"

#include <string.h>

#define CONTAINER(type, member, at) ((type *)((char *)(at)-offsetof(type, member)))

/** The key of receives of a class that match this source and tag. */
static uint64_t key_in(superpipe_class_t class, int32_t source, int32_t tag)
{
    return superpipe_match_key(class & SUPERPIPE_ONE_TAG ? SUPERPIPE_ANY_SOURCE : source,
                               class & SUPERPIPE_ONE_SOURCE ? SUPERPIPE_ANY_TAG : tag);
}

static bool has_tag(superpipe_class_t class, int32_t tag)
{
    return tag >= 0 || !(class & SUPERPIPE_ONE_SOURCE);
}

void superpipe_match_init(superpipe_match_t *m)
{
    memset(m, 0, sizeof(*m));
    superpipe_rings_init(&m->posted);
    superpipe_rings_init(&m->unexpected);
    TAILQ_INIT(&m->application);
    TAILQ_INIT(&m->internal);
    m->indexed[SUPERPIPE_EXACT] = true;
}

void superpipe_match_fini(superpipe_match_t *m)
{
    superpipe_rings_fini(&m->posted);
    superpipe_rings_fini(&m->unexpected);
}

/* ---- receives -------------------------------------------------------------------------------- */

bool superpipe_match_cancel(superpipe_match_t *m, superpipe_receive_t *receive)
{
    if (!superpipe_link_is_in(&receive->link))
        return false;
    superpipe_match_withdraw(m, receive);
    return true;
}

superpipe_receive_t *superpipe_match_abandon(superpipe_match_t *m, int32_t source, size_t *cursor)
{
    const uint64_t mask = source == SUPERPIPE_ALL_RECEIVES ? 0 : superpipe_match_key(-1, 0);
    superpipe_link_t *link =
        superpipe_rings_some(&m->posted, superpipe_match_key(source, 0), mask, cursor);

    if (link == NULL)
        return NULL;
    superpipe_receive_t *receive = CONTAINER(superpipe_receive_t, link, link);
    superpipe_match_withdraw(m, receive);
    return receive;
}

/** The first posted of the matching receives of a class, if it was posted before `than`; else
 *  `than`. */
static superpipe_receive_t *earlier(superpipe_match_t *m, superpipe_class_t class, int32_t source,
                                    int32_t tag, superpipe_receive_t *than)
{
    superpipe_link_t *link;
    superpipe_receive_t *receive;

    if (m->waiting[class] == 0 || !has_tag(class, tag))
        return than;
    link = superpipe_rings_first(&m->posted, key_in(class, source, tag));
    receive = CONTAINER(superpipe_receive_t, link, link);
    return link != NULL && (than == NULL || receive->stamp < than->stamp) ? receive : than;
}

superpipe_receive_t *superpipe_match_earlier(superpipe_match_t *m, int32_t source, int32_t tag,
                                             superpipe_receive_t *earliest)
{
    for (superpipe_class_t class = SUPERPIPE_ONE_SOURCE; class < SUPERPIPE_CLASSES; class ++)
        earliest = earlier(m, class, source, tag, earliest);
    return earliest;
}

/* ---- messages -------------------------------------------------------------------------------- */

static superpipe_list_t *list_of(superpipe_match_t *m, int32_t tag)
{
    return tag >= 0 ? &m->application : &m->internal;
}

static void enter(superpipe_match_t *m, superpipe_class_t class, superpipe_message_t *message)
{
    if (has_tag(class, message->tag))
        superpipe_rings_append(&m->unexpected, &message->link[class],
                               key_in(class, message->source, message->tag));
}

static void enter_all(superpipe_match_t *m, superpipe_class_t class, const superpipe_list_t *list)
{
    superpipe_message_t *message;

    TAILQ_FOREACH(message, list, of_list)
        enter(m, class, message);
}

/** Receives that name a tag find messages of only one of the two lists, so these need no common
 *  order. */
static void make_index(superpipe_match_t *m, superpipe_class_t class)
{
    enter_all(m, class, &m->application);
    enter_all(m, class, &m->internal);
    m->indexed[class] = true;
}

void superpipe_match_keep(superpipe_match_t *m, superpipe_message_t *message)
{
    TAILQ_INSERT_TAIL(list_of(m, message->tag), message, of_list);
    m->nunexpected++;
    for (superpipe_class_t class = SUPERPIPE_EXACT; class < SUPERPIPE_ANY_MESSAGE; class ++)
        if (m->indexed[class])
            enter(m, class, message);
}

void superpipe_match_take(superpipe_match_t *m, superpipe_message_t *message)
{
    for (superpipe_class_t class = SUPERPIPE_EXACT; class < SUPERPIPE_ANY_MESSAGE; class ++)
        if (superpipe_link_is_in(&message->link[class]))
            superpipe_rings_remove(&m->unexpected, &message->link[class]);
    TAILQ_REMOVE(list_of(m, message->tag), message, of_list);
    if (--m->nunexpected == 0)
        m->indexed[SUPERPIPE_ONE_SOURCE] = m->indexed[SUPERPIPE_ONE_TAG] = false;
}

superpipe_message_t *superpipe_match_discard(superpipe_match_t *m)
{
    superpipe_list_t *list = TAILQ_EMPTY(&m->application) ? &m->internal : &m->application;
    superpipe_message_t *message = TAILQ_FIRST(list);

    if (message != NULL)
        superpipe_match_take(m, message);
    return message;
}

superpipe_message_t *superpipe_match_probe(superpipe_match_t *m, int32_t source, int32_t tag)
{
    const superpipe_class_t class = superpipe_class_of(source, tag);
    superpipe_message_t *head = TAILQ_FIRST(&m->application);

    if (m->nunexpected == 0 || class == SUPERPIPE_ANY_MESSAGE)
        return head;
    /* The first message to arrive in the list is also the first of those that match. */
    if (head != NULL && key_in(class, head->source, head->tag) == superpipe_match_key(source, tag))
        return head;
    if (!m->indexed[class])
        make_index(m, class);
    superpipe_link_t *link =
        superpipe_rings_first(&m->unexpected, superpipe_match_key(source, tag));
    /* A message has one link for each class. */
    return link != NULL ? CONTAINER(superpipe_message_t, link[0], link - class) : NULL;
}
