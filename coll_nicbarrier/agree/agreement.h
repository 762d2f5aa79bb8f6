/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the parts of the agreement share: agree.c has the whole, node.c what is done on a
 *  node, network.c what leaders do. Their functions return OMPI_SUCCESS, or the error of a message
 *  that has failed; what this rank cannot do is no error, but is said to all. */
#ifndef NICBARRIER_AGREEMENT_H
#define NICBARRIER_AGREEMENT_H

#include "coll_nicbarrier/agree/agree.h"
#include "coll_nicbarrier/agree/plan.h"
#include "common/node/node.h"

/** An endpoint on its way. Length 0: there is none. */
typedef struct nicbarrier_letter {
    uint32_t len;
    unsigned char bytes[NICBARRIER_ENDPOINT_MAX];
} nicbarrier_letter_t;

/** What messages between leaders are read from and written to. It is given up where one fails,
 *  since others may be under way. */
typedef struct nicbarrier_mail {
    int said, heard; /**< of a trial: it has succeeded */
    int partners;
    int32_t partner[NICBARRIER_PARTNERS_MAX];
    nicbarrier_letter_t mine;
    nicbarrier_letter_t theirs[];
} nicbarrier_mail_t;

typedef struct nicbarrier_agreement {
    struct ompi_communicator_t *comm;
    const nicbarrier_agreement_config_t *config;
    nicbarrier_wishes_t wishes;
    nicbarrier_facts_t mine;
    nicbarrier_facts_t *facts; /**< of all */
    int32_t *room;             /**< of the plan */
    nicbarrier_plan_t plan;
    nicbarrier_team_t *team;
    nicbarrier_mail_t *mail; /**< a leader's among several */
    bool connected;          /**< its engine is */
    int engine;              /**< that has been agreed on, or NICBARRIER_ANY_ENGINE */
    nicbarrier_reason_t why;
    int speaker; /**< the rank that is to give the reason why nothing came of it */
} nicbarrier_agreement_t;

/** Opens an engine, once for each process. 0, or -1 and the reason. */
int nicbarrier_open_engine(int engine, const nicbarrier_engine_settings_t *settings,
                           nicbarrier_reason_t *why);

/** Most words at a time. */
#define NICBARRIER_WORDS_MAX 5

/** All ranks: says some words, gets the least of each that was said, and notes who has a reason to
 *  give. */
int nicbarrier_say(nicbarrier_agreement_t *a, int *words, int n);

/** What has become of a node at one of its processes, from bad to good. */
typedef enum nicbarrier_mapped {
    NICBARRIER_EXHAUSTED, /**< nothing will come of it */
    NICBARRIER_UNMAPPED,
    NICBARRIER_UNNAMED, /**< it must not open what has no name */
    NICBARRIER_MAPPED
} nicbarrier_mapped_t;

/** Makes the team's part on the node, as the plan says, with a segment that has a name where one is
 *  needed. The first of a node keeps it in *key_p until all have it. */
int nicbarrier_set_up_node(nicbarrier_agreement_t *a, bool named, onic_segment_key_t *key_p,
                           nicbarrier_mapped_t *mapped_p);

/** A leader among several: what it needs memory for. */
bool nicbarrier_make_mail(nicbarrier_agreement_t *a);

/** The part between several leaders; all ranks take part in what is said. Sets a->engine. */
int nicbarrier_set_up_network(nicbarrier_agreement_t *a);

#endif
