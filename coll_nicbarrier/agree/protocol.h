/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The agreement of one rank as a machine: what comes in are messages, what goes out are messages
 * and things to do here, as calls of a host (agree.c, or a test).
 *
 * 1. hello     a sweep (sweep.h) over all ranks: the settings are the same, nobody has failed, and
 *              all have the same view of who shares a node with whom; the key of the group
 * 2. node      the first rank of each node makes a segment, the others map it and answer. All of
 *              them, or none: then everybody there is alone. Those who are alone, and one of every
 *              `limit` others, lead
 * 3. leaders   a sweep that counts the leaders and tells each its index and its neighbours' ranks;
 *              all choose the engine by the same numbers. Where one leader is left, all is done
 * 4. fingers   leaders: the ranks of those 2^k away (ring.h); for the gather schedule of all
 * 5. endpoints leaders: to the partners of the schedule, and from them
 * 6. connected leaders: has anybody failed? If not the trial epoch runs, and they tell each other
 *              what came of it. Where the engine has failed they go back to 5 with the next best
 * 7. result    a sweep: the engine, or none
 *
 * A rank that cannot go on says so in what it sends anyway and goes on to the end with the others,
 * so nobody waits for it. A broken message counts as one that says so where that is heard by all
 * (sweeps on the way up, answers, endpoints); elsewhere its sender alone could tell what all others
 * know by now, and the agreement ends here with an error.
 *
 * A machine allocates nothing and takes a few hundred bytes. Each rank awaits one message at a time
 * and sends one at a time. Deadlock is impossible if two messages of each rank can be under way.
 *
 * Messages: 4 (N - 1) of the first two sweeps for N ranks, and 3 for each rank of a node but its
 * first. For L > 1 leaders 2 (N - 1) more, and for each leader, K being ceil(log2 L): 2 (K - 1)
 * for fingers, and for every engine tried an endpoint to each partner and 2 K words (K where
 * somebody could not connect).
 *
 * Pure.
 */
#ifndef NICBARRIER_PROTOCOL_H
#define NICBARRIER_PROTOCOL_H

#include "coll_nicbarrier/agree/message.h"
#include "coll_nicbarrier/agree/ring.h"
#include "coll_nicbarrier/agree/sweep.h"
#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/schedule/schedule.h"

/** The number of the engine of a node alone. */
#define NICBARRIER_NODE_ENGINE 0

/** What an engine is, as far as the agreement wants to know. */
typedef struct nicbarrier_candidate {
    uint8_t needs; /**< nicbarrier_needs_t */
    bool network;
    uint8_t score; /**< at this rank; 0: it has not been opened */
} nicbarrier_candidate_t;

/** What a rank brings. */
typedef struct nicbarrier_setup {
    int32_t size;
    int32_t me;
    int32_t first;     /**< of my node, in my view */
    int32_t n;         /**< members of my node, in my view */
    int32_t ppn;       /**< most of a node behind one leader; 0: all */
    uint32_t number;   /**< of this agreement on its communicator */
    uint64_t settings; /**< hash of what must be the same everywhere */
    uint64_t key;      /**< a random number */
    uint32_t job;
    int8_t engine;    /**< that was asked for, or NICBARRIER_ANY_ENGINE */
    uint8_t schedule; /**< nicbarrier_schedule_kind_t */
    bool failed;      /**< this rank cannot take part in anything */
    nicbarrier_candidate_t candidate[NICBARRIER_ENGINES_MAX];
} nicbarrier_setup_t;

/** What is done for a machine. Nothing waits. Reasons for failures go into `why` (host). */
typedef struct nicbarrier_host {
    /** Sends; the bytes are copied. */
    void (*send)(void *arg, int32_t rank, const void *bytes, size_t len);
    /** The member of this node behind rank `after` (-1: the first); -1: there is none. */
    int32_t (*member)(void *arg, int32_t after);

    /** The first: makes a segment for n members in areas of `limit`, anew where there was one; with
     *  a name where one is needed. False: there is none, and the key is empty. */
    bool (*make)(void *arg, int32_t n, int32_t limit, bool named, unsigned char *key);
    /** The others: map it and put down where they run. */
    nicbarrier_mapped_t (*map)(void *arg, const unsigned char *key, int32_t index, int32_t n,
                               int32_t limit);
    /** All have answered. `shared`: all have it, and it is to be used, by the first before the
     *  others hear of it; else it is let go. `others`: there are processes elsewhere. False: memory
     *  is exhausted. */
    bool (*settle)(void *arg, bool shared, bool others);

    /** Makes my endpoint for an engine's group; false: cannot. What was before is dropped. */
    bool (*prepare)(void *arg, int engine, const nicbarrier_group_t *group);
    /** Sends a topic, with my endpoint behind it if it could be made. */
    void (*send_endpoint)(void *arg, int32_t rank, nicbarrier_topic_t topic);
    /** Keeps a partner's endpoint; false: memory is exhausted. */
    bool (*keep)(void *arg, int32_t member, const void *bytes, size_t len);
    /** Connects with those and enters the first epoch. */
    bool (*connect)(void *arg);
    /** All have done so. */
    void (*expect)(void *arg);
    /** Is the first epoch complete? 1 yes, 0 not yet, -1 it never will be. */
    int (*trial)(void *arg);
    /** Takes the network part away. */
    void (*drop)(void *arg);

    /** Room for the ranks of n leaders, until the end; NULL where there is none. */
    uint32_t *(*table)(void *arg, int32_t n);
} nicbarrier_host_t;

typedef enum nicbarrier_turn {
    NICBARRIER_GO,    /**< nicbarrier_protocol_go, when one more message could be sent */
    NICBARRIER_AWAIT, /**< nicbarrier_protocol_take, with the message of nicbarrier_protocol_source
                       */
    NICBARRIER_WATCH, /**< both, whatever comes first */
    NICBARRIER_OVER
} nicbarrier_turn_t;

typedef enum nicbarrier_verdict {
    NICBARRIER_OPEN,
    NICBARRIER_AGREED,
    NICBARRIER_DECLINED, /**< by all */
    NICBARRIER_ERROR     /**< a message was broken; the others may wait for this rank */
} nicbarrier_verdict_t;

typedef struct nicbarrier_protocol {
    nicbarrier_setup_t setup;
    const nicbarrier_host_t *host;
    void *arg;
    nicbarrier_reason_t *why;
    nicbarrier_summary_t record; /**< of the sweep that is under way, or was */
    uint64_t key;
    uint32_t *table; /**< ranks of the leaders from me on, or NULL */
    int32_t cursor;  /**< rank of a member, or what has come of a table */
    int32_t count;   /**< index of that member */
    int32_t n;       /**< of my node */
    int32_t limit;   /**< most of them behind one leader */
    int32_t index;   /**< mine among them */
    int32_t leaders;
    uint8_t step;    /**< protocol_internal.h */
    uint8_t sweep;   /**< nicbarrier_subject_t */
    uint8_t k;       /**< child, round, or slot */
    uint8_t word;    /**< nicbarrier_word_t */
    uint8_t words;   /**< of the node, sent or heard */
    uint8_t worst;   /**< of the answers of the node */
    uint8_t attempt; /**< of engines */
    uint8_t tried;   /**< bit mask of engines */
    int8_t engine;   /**< chosen, or NICBARRIER_ANY_ENGINE */
    uint8_t verdict; /**< nicbarrier_verdict_t */
    bool jobs;       /**< there are several */
    bool made;       /**< the segment is there */
    bool alone;      /**< a node of its own */
    bool leads;
    bool failed; /**< here, for good */
    bool unfit;  /**< here or, after an exchange, anywhere: this attempt comes to nothing */
    bool early;  /**< the first word of a trial's end has come */
    union {
        unsigned char segment[NICBARRIER_SEGMENT_KEY];    /**< its key, in the node phase */
        nicbarrier_span_t child[NICBARRIER_CHILDREN_MAX]; /**< until the leaders are known */
        nicbarrier_ring_t ring;
    };
} nicbarrier_protocol_t;

/** Begins. `setup` is copied; `host`, `arg` and `why` (empty, or the reason why setup->failed) must
 *  stay. Sends nothing yet. */
void nicbarrier_protocol_init(nicbarrier_protocol_t *m, const nicbarrier_setup_t *setup,
                              const nicbarrier_host_t *host, void *arg, nicbarrier_reason_t *why);

nicbarrier_turn_t nicbarrier_protocol_turn(const nicbarrier_protocol_t *m);
/** A piece of work, in which one message is sent at most. */
void nicbarrier_protocol_go(nicbarrier_protocol_t *m);
/** Whose message is awaited; -1 where none is (only while a trial is watched). */
int32_t nicbarrier_protocol_source(const nicbarrier_protocol_t *m);
/** Is it an endpoint, which may be longer than NICBARRIER_MESSAGE_MAX? */
bool nicbarrier_protocol_is_long(const nicbarrier_protocol_t *m);
/** It has come. `len` 0: it did not fit into what is the longest. */
void nicbarrier_protocol_take(nicbarrier_protocol_t *m, const void *bytes, size_t len);

/** At the end: the rank that is to give the reason why nothing came of it. */
int32_t nicbarrier_protocol_speaker(const nicbarrier_protocol_t *m);

/** Most processes of a rank's node behind one leader: 1 .. setup->n. */
int32_t nicbarrier_protocol_limit(const nicbarrier_setup_t *setup);

/** A view of who shares a node, as a number: see nicbarrier_summary_t. `first` leads `n` of which
 *  `rank` is one. */
uint64_t nicbarrier_view_hash(int32_t first, int32_t rank, int32_t n);

#endif
