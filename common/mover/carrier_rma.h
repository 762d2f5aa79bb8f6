/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The mover between hosts, where an adapter can put into memory of a peer (A. Denis 2011, section
 * 4). Internal to the mover.
 *
 * The landing area is registered once, and peers are told once where it is. A sender packs chunks
 * into bounce slots of its own, which are registered too, and puts each by one put. A put asks for
 * slots by its ticket and packs its first chunk while the grant is under way; for a get the asker
 * has reserved them before it asks. With the grant the sender says how it uses the slots (LET), and
 * both machines run over the real lease from then on.
 *
 * Words. Where puts are known to be seen in order (onic_puts_in_order, on both sides) they stand
 * behind the blocks of a put and the receiver looks at them (blocks.h). Else neither UCX nor verbs
 * promise anything before a flush of the connection has ended, so each chunk is announced by a
 * message behind such a flush, while others follow in other slots. A fence of UCX's in place of the
 * flush would wait, in its newer versions, for all that was started. An adapter's puts wake nobody:
 * a message follows the last one before the sender waits or ends.
 *
 * The carrier's row may be called with or without the wire lock, so what needs UCX is put down as
 * an errand, and done at once if the lock is free, or else by the next progress. Errands are done
 * in their order.
 */
#ifndef ONIC_CARRIER_RMA_H
#define ONIC_CARRIER_RMA_H

#include "common/mover/pipe/blocks.h"
#include "common/mover/pipe/grant.h"
#include "common/mover/pipe/terms.h"
#include "common/mover/transfer_internal.h"
#include "common/wire/wire_put.h"

/** Asks of mine that a peer has not answered yet: it takes no more. */
#define ONIC_RMA_ASKS ONIC_GRANT_ASKS

/** What is known of a peer; the wire lock. */
typedef struct onic_rma_peer {
    struct onic_rma_peer *next;
    onic_peer_t *peer;
    onic_remote_t *remote; /**< its area; NULL: not told yet */
    uint32_t slot_bytes;
    unsigned nslots;
    unsigned asks;      /**< of mine */
    bool in_order;      /**< it sees puts in order */
    bool asked;         /**< for its area */
    atomic_bool failed; /**< a message could not be sent: it is to be given up; any thread */
    onic_asker_t asker; /**< for slots of mine; lost: and that has been seen to */
} onic_rma_peer_t;

typedef enum onic_rma_type {
    ONIC_RMA_AREA = 1, /**< where my area is; its description follows */
    ONIC_RMA_GRANT,    /**< value: slots for your transfer */
    ONIC_RMA_LET,      /**< value: those that it uses; size: of data in a block */
    ONIC_RMA_WORD,     /**< value: of a slot of yours */
    ONIC_RMA_ACK,      /**< value: rounds of a slot that have been consumed */
    ONIC_RMA_KNOCK     /**< there is something to be looked at */
} onic_rma_type_t;

enum {
    ONIC_RMA_TELL_ME = 1,  /**< AREA: where yours is */
    ONIC_RMA_IN_ORDER = 2, /**< AREA: I see puts in order. LET: they are made so */
    ONIC_RMA_ONE_BLOCK = 4 /**< LET: in a slot */
};

/** A message; all of it comes from a peer. */
typedef struct onic_rma_message {
    uint8_t type;
    uint8_t flags;
    uint16_t slot; /**< AREA: how many */
    uint32_t size; /**< AREA: bytes of a slot */
    uint32_t to;   /**< a transfer of whom it goes to */
    uint32_t from; /**< of whom it comes from */
    uint64_t value;
} onic_rma_message_t;

typedef struct onic_rma onic_rma_t;

/** Something to be done with the wire lock. */
typedef struct onic_rma_errand {
    struct onic_rma_errand *next;
    enum {
        ONIC_RMA_DO_PUT,  /**< the blocks of a slot that `word` tells of, then that word */
        ONIC_RMA_DO_TELL, /**< `message` */
        ONIC_RMA_DO_GIVE, /**< slots of mine that the peer had */
        ONIC_RMA_DO_CLOSE /**< the transfer is over */
    } what;
    onic_rma_t *r;
    unsigned slot;
    uint64_t word; /**< of a PUT, slots of a GIVE; CLOSE: the ticket is known to nobody */
    onic_rma_message_t message;
    onic_put_t put; /**< while UCX has it: then it is no errand */
} onic_rma_errand_t;

/** One side of a transfer. It may outlive that: puts are under way, or the grant has not come. */
struct onic_rma {
    struct onic_rma *next; /**< in its bucket, by name; wire lock */
    onic_rma_peer_t *peer;
    uint32_t name;
    uint32_t other; /**< its name at the other side, 0: not known; wire lock */
    uint64_t len;
    onic_terms_t terms;
    _Atomic(unsigned) refs; /**< errands, puts and flushes; any thread */
    /* Who has the transfer claimed, or, when that is over, the wire lock: */
    onic_blocks_t blocks;
    bool ordered;
    uint64_t put; /**< bytes of the chunks that have been put */
    unsigned nbounce;
    unsigned char bounce[ONIC_SLOTS_MAX]; /**< my slots, in the order of those of the lease */
    onic_sender_t sender;                 /**< of a transfer that was over before the grant came */
    onic_rma_errand_t close;
};

typedef struct onic_rma_early onic_rma_early_t;

typedef struct onic_rma_state {
    bool open;
    onic_mover_rma_t use;
    onic_region_t *landing, *bounce_region;
    char *bounce;
    uint32_t slot_bytes;
    unsigned nslots;
    onic_grants_t grants;
    onic_pool_wait_t wait;
    onic_rma_peer_t *peers;
    uint32_t names;
    onic_rma_t *bucket[256];
    uint64_t resting; /**< slots of the lost */
    uint64_t rested;  /**< when something was last added: nanoseconds */
    unsigned losses;
    size_t description_len;
    unsigned char description[1024];
    /** Something is to be done when the lock is free. */
    onic_rma_early_t *early; /**< areas that peers have told of, and not been opened yet */
    atomic_bool hungry;
    atomic_bool failing; /**< and a peer has failed */
    _Atomic(uint64_t) bounce_free;
} onic_rma_state_t;

extern ONIC_EXPORT onic_rma_state_t onic_rma_state;
extern const onic_carrier_t onic_carrier_rma;

/** To be called before anybody opens the wire: it is to be able to put, where an adapter is. */
void onic_rma_announce(onic_mover_rma_t use);
/** Registers the landing area, and as many bounce slots. Prints nothing: without it nobody is
 *  reached. The wire lock is not held. */
void onic_rma_open(onic_mover_rma_t use);
/** When all transfers have been stopped. The wire lock is not held. */
void onic_rma_close(void);
/** Is there nothing that waits for it? */
static inline bool onic_rma_idle(void)
{
    return !atomic_load_explicit(&onic_rma_state.hungry, memory_order_relaxed);
}
/** Does what waits for the wire lock; a load where there is nothing. Without it; any thread. */
int onic_rma_progress(void);

/* With the wire lock held: */
/** A peer's record, or NULL where it is not reached, or not yet: the first time it is asked for its
 *  area. */
onic_rma_peer_t *onic_rma_peer(onic_peer_t *peer);
/** Is there a record? Slots that a lost peer had rest, and are counted there. */
bool onic_rma_knows(const onic_peer_t *peer);
/* As in mover.h. */
onic_transfer_t *onic_rma_send(onic_rma_peer_t *to, onic_mover_end_t *source,
                               onic_ticket_t *ticket);
int onic_rma_receive(onic_rma_peer_t *from, const onic_ticket_t *ticket, onic_mover_end_t *sink);
onic_transfer_t *onic_rma_expect(onic_rma_peer_t *from, onic_mover_end_t *sink,
                                 onic_ticket_t *ticket);
int onic_rma_answer(onic_rma_peer_t *to, const onic_ticket_t *ticket, onic_mover_end_t *source);

/* carrier_rma_errand.c; with or without the lock, but for the first: with it */
int onic_rma_do_errands(void);
void onic_rma_put(onic_rma_t *r, unsigned slot, uint64_t word);
void onic_rma_tell(onic_rma_t *r, const onic_rma_message_t *m);
void onic_rma_give(onic_rma_t *r, uint64_t slots);
void onic_rma_over(onic_rma_t *r, bool withdrawn);
/** Bounce slots: takes one to `most`, or none where there is none; adds them to the record's. */
unsigned onic_rma_take_bounce(onic_rma_t *r, unsigned most);
char *onic_rma_bounce(const onic_rma_t *r, unsigned slot);

/* carrier_rma_slots.c; with the lock */
/** Slots of mine may be granted from now on. */
void onic_rma_share_slots(void);
/** Sees to the peers that were lost since the last look. */
void onic_rma_look_for_losses(void);
/** Frees what the lost had, when it has rested. Returns how much was done. */
int onic_rma_end_rest(void);
/** Slots of mine for a record, with its words cleared: at once, and 0 where there are none ... */
uint64_t onic_rma_reserve(onic_rma_t *r, uint32_t slots);
/** ... or in turn, for those that have asked. */
int onic_rma_serve(void);
/** A transfer gives slots of mine back that the peer had. */
void onic_rma_given(onic_rma_peer_t *p, uint64_t slots);
/* carrier_rma_peer.c; with the lock */
onic_rma_t *onic_rma_new(onic_rma_peer_t *peer, bool sends);
onic_rma_t *onic_rma_find(uint32_t name);
/** Frees a record if nothing needs it any more. */
void onic_rma_drop(onic_rma_t *r);
int onic_rma_send_message(onic_rma_peer_t *p, const onic_rma_message_t *m);

/* carrier_rma.c; the wire lock is held and the transfer is over, or who has it claimed */
/** The grant is there: the machine runs over it from now on. */
void onic_rma_let(onic_rma_t *r, onic_sender_t *s);
/** Something could not be sent, or cannot be: neither side could go on. Any thread; the connection
 *  counts as lost a little later. */
void onic_rma_fail(onic_rma_peer_t *p);

#endif
