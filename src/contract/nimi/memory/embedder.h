/* embedder: give the records of banks their vectors, after they were retained.
 *
 *     off ─▶ looking ─▶ asking a model ─▶ keeping ─▶ looking ...
 *      ▲        ├─▶ idle, until it is woken: no bank lags
 *      │        └─▶ resting: every bank that lags failed lately
 *      └── from every state
 *
 * What is to be done is in the store (store/bank_vector.h), so it goes on after a restart where it
 * was. Banks that lag take turns, a batch of records each. A bank whose model fails rests
 * for a second, then for twice as long each time, up to a minute. When a model refuses a batch
 * its records are asked for one by one, and one that is refused alone, while the model takes
 * another text, gets no vector: it is found by its words.
 *
 * Each loop has one, and one of them works at a time (struct embed_turn). The others leave word.
 *
 * Private to contract/nimi.
 *
 * Memory   part of its instance.
 * Threads  the instance's loop; the turn: any.
 */
#ifndef WEIR_CONTRACT_NIMI_MEMORY_EMBEDDER_H
#define WEIR_CONTRACT_NIMI_MEMORY_EMBEDDER_H

#include "base/states.h"
#include "store/bank_vector.h"

#include <pthread.h>

struct embed;
struct nimi_instance;

/* Which loop's embedder works: the runtime's. */
struct embed_turn {
    pthread_mutex_t lock;
    bool taken, again; /* again: there may be more to do than it has seen */
};

void embed_turn_init(struct embed_turn *turn);
void embed_turn_done(struct embed_turn *turn);

enum embedder_state {
    EMBEDDER_OFF,
    EMBEDDER_IDLE,
    EMBEDDER_LOOKING,
    EMBEDDER_ASKING,
    EMBEDDER_KEEPING,
    EMBEDDER_RESTING,
    EMBEDDER_STATE_COUNT,
};

extern const struct state embedder_states[EMBEDDER_STATE_COUNT];

#define EMBEDDER_RESTS 64 /* banks that rest at once; beyond them the oldest is tried again */

struct embedder_batch; /* embedder.c */

struct embedder {
    struct nimi_instance *instance;
    struct store *store;
    enum embedder_state state;
    int64_t after; /* the bank that was looked at last */
    bool worked;   /* in this round of the banks */
    struct bank_behind_ask *looking;
    struct embed *embed;
    struct bank_ask *keeping;
    struct embedder_batch *batch; /* while asking and keeping */
    struct timer rest;
    struct embedder_rest {
        int64_t bank; /* 0: none */
        uint64_t until_ms, pause_ms;
    } rests[EMBEDDER_RESTS];
    size_t next_rest;
    int64_t single_bank; /* its records are asked for one by one, */
    int64_t single_upto; /* up to this one */
};

void embedder_init(struct embedder *embedder, struct nimi_instance *instance);
void embedder_start(struct embedder *embedder, struct store *store); /* NULL: stays off */
void embedder_stop(struct embedder *embedder);                       /* harmless when off */

/* A bank may lag. */
void embedder_wake(struct embedder *embedder);

#endif
