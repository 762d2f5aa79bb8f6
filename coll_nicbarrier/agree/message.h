/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The messages of the agreement, and what is refused.
 *
 * Each says what it is about: its kind, the step within that kind, the attempt, and the number of
 * the agreement on its communicator. All but endpoints have one size for each kind.
 *
 * Pure.
 */
#ifndef NICBARRIER_MESSAGE_H
#define NICBARRIER_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/engine.h"

typedef enum nicbarrier_subject {
    NICBARRIER_HELLO = 1, /**< sweep: settings, views of the nodes, failures */
    NICBARRIER_NODE,      /**< to a member of a node: its segment, or what has become of it */
    NICBARRIER_ANSWER,    /**< from a member of a node */
    NICBARRIER_LEADERS,   /**< sweep: how many leaders, and my neighbours on their ring */
    NICBARRIER_FINGER,    /**< between leaders: who is twice as far away */
    NICBARRIER_TABLE,     /**< between leaders: ranks of many, for the gather schedule */
    NICBARRIER_ENDPOINT,  /**< between partners of the schedule */
    NICBARRIER_CONNECTED, /**< between leaders: has anybody failed to connect? */
    NICBARRIER_TRIAL,     /**< between leaders: has anybody's trial failed? */
    NICBARRIER_RESULT     /**< sweep: which engine, or none */
} nicbarrier_subject_t;

typedef struct nicbarrier_topic {
    uint8_t subject; /**< nicbarrier_subject_t */
    uint8_t step;
    uint8_t attempt;
    uint32_t number; /**< of the agreement on its communicator */
} nicbarrier_topic_t;

/** In place of a rank. */
#define NICBARRIER_NO_RANK UINT32_MAX

/** Bytes before what a message has to say. */
#define NICBARRIER_TOPIC_SIZE 8
/** Bytes of the longest message, endpoints apart. */
#define NICBARRIER_MESSAGE_MAX 256
/** Bytes by which the members of a node find their segment; machines of one node understand them,
 *  nobody else does. */
#define NICBARRIER_SEGMENT_KEY 96
/** Most ranks in one message of a table. */
#define NICBARRIER_TABLE_RANKS 60

/* ---- what they say ----------------------------------------------------------------------------
 */

/** Bits of nicbarrier_summary_t. */
enum {
    NICBARRIER_FAILED = 1,  /**< somebody cannot go on: nothing will come of it */
    NICBARRIER_DIFFERS = 2, /**< ranks have different settings */
    NICBARRIER_JOBS = 4     /**< ranks are of several jobs */
};

/** What a sweep gathers of a range of ranks, and what it says on the way back. */
typedef struct nicbarrier_summary {
    uint8_t flags;
    uint8_t engine;      /**< result: its number + 1, or 0 */
    uint32_t complainer; /**< the first rank that has a reason to give */
    uint64_t settings;   /**< hello: a hash of what must be the same */
    uint64_t views;      /**< hello: sums to 0 where all agree on who shares a node */
    uint64_t key;        /**< hello: the group's, on the way back */
    uint32_t job;        /**< hello */
    uint32_t leaders;    /**< how many in the range; on the way back: in all */
    uint32_t first;      /**< leader of the range; on the way back: the next one behind it */
    uint32_t last;       /**< leader of the range; on the way back: the last one before it */
    uint32_t index;      /**< on the way back: leaders before the range */
    uint32_t nodes;
    uint8_t score[NICBARRIER_ENGINES_MAX]; /**< of each engine, at the leader who could do worst */
} nicbarrier_summary_t;

#define NICBARRIER_SUMMARY_SIZE (NICBARRIER_TOPIC_SIZE + 64)

/** What the first process of a node tells another. */
typedef enum nicbarrier_word {
    NICBARRIER_MAP = 1, /**< map this segment, and answer */
    NICBARRIER_SHARED,  /**< all have it */
    NICBARRIER_APART    /**< somebody cannot have it: everybody is alone */
} nicbarrier_word_t;

typedef struct nicbarrier_node_word {
    uint8_t word;
    uint32_t index; /**< of the one it is told */
    uint32_t n;     /**< of the node */
    unsigned char key[NICBARRIER_SEGMENT_KEY];
} nicbarrier_node_word_t;

#define NICBARRIER_NODE_SIZE (NICBARRIER_TOPIC_SIZE + 12 + NICBARRIER_SEGMENT_KEY)

/** A member's answer; of several the last of this list counts. */
typedef enum nicbarrier_mapped {
    NICBARRIER_MAPPED = 1,
    NICBARRIER_UNNAMED, /**< it must not open what has no name */
    NICBARRIER_UNMAPPED
} nicbarrier_mapped_t;

/** A word: an answer, a rank, or 0 or 1 for a failure. */
#define NICBARRIER_WORD_SIZE (NICBARRIER_TOPIC_SIZE + 4)

/* ---- writing and reading ----------------------------------------------------------------------
 */

/** All write to `at` and return how many bytes. */
size_t nicbarrier_topic_write(void *at, nicbarrier_topic_t topic);
size_t nicbarrier_summary_write(void *at, nicbarrier_topic_t topic, const nicbarrier_summary_t *r);
size_t nicbarrier_node_write(void *at, nicbarrier_topic_t topic, const nicbarrier_node_word_t *w);
size_t nicbarrier_word_write(void *at, nicbarrier_topic_t topic, uint32_t word);
/** At most NICBARRIER_TABLE_RANKS. */
size_t nicbarrier_table_write(void *at, nicbarrier_topic_t topic, bool failed,
                              const uint32_t *ranks, int n);

typedef enum nicbarrier_fit {
    NICBARRIER_FITS,
    NICBARRIER_STALE, /**< of an agreement before this one: as if it had not come */
    NICBARRIER_BROKEN /**< about something else, or no message of the agreement */
} nicbarrier_fit_t;

/** Is the message about what is expected? */
nicbarrier_fit_t nicbarrier_topic_check(const void *bytes, size_t len, nicbarrier_topic_t expected);

/** What a message that fits has to say, in a communicator of `size` ranks: false where its length
 *  or a value is none that can be. */
bool nicbarrier_summary_read(const void *bytes, size_t len, uint32_t size, nicbarrier_summary_t *r);
bool nicbarrier_node_read(const void *bytes, size_t len, uint32_t size, nicbarrier_node_word_t *w);
/** A word of min .. max. */
bool nicbarrier_word_read(const void *bytes, size_t len, uint32_t min, uint32_t max,
                          uint32_t *word);
/** Exactly `n` ranks. */
bool nicbarrier_table_read(const void *bytes, size_t len, uint32_t size, bool *failed_p,
                           uint32_t *ranks, int n);

#endif
