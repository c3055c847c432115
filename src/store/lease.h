/* lease: what one replica holds at a time: a session, or an idempotency key that is being used.
 *
 * A lease is a row: its key and the number of its holder. It is the holder's for as long as the
 * holder is not fenced (core_replica.h), which needs no renewal of its own, and which every
 * commit of the holder proves. Those of a replica that died, or ended in order, are free once
 * another one has ended its turns (takeover.h).
 *
 * Memory   the caller keeps a request until on_done has run.
 * Threads  the caller's loop.
 */
#ifndef WEIR_STORE_LEASE_H
#define WEIR_STORE_LEASE_H

#include "store/task.h"

#define LEASE_KEY_BYTES 33 /* its kind, then a SHA-256 of what it is for */
#define LEASE_NAME_BYTES 64

enum lease_of { LEASE_OF_SESSION = 's', LEASE_OF_KEY = 'k' };

struct lease_key {
    char bytes[LEASE_KEY_BYTES];
};

/* The change that is reported when it is given back. */
uint64_t lease_change(const struct lease_key *key);

/* Each text counts with its length, so that no two lists of texts share a key. */
struct lease_key lease_key(enum lease_of of, const struct str *texts, size_t count);

struct lease_request;
typedef void lease_fn(struct lease_request *request, const struct err *failed, void *ctx);

struct lease_request {
    struct store_task task;
    struct lease_key key;
    bool recovers; /* it may be one that waits here until a dead replica's turns are ended */
    lease_fn *on_done;
    void *ctx;
    /* The answer, when it is asked for. */
    bool held;                     /* by this replica now */
    char holder[LEASE_NAME_BYTES]; /* else: the name of the one that holds it */
};

/* Ask for the lease. Harmless if this replica has it. */
void lease_ask(struct store *store, struct loop *home, struct lease_request *request);

/* Only look: `held`, or whose it is; an empty name when it is free. */
void lease_look(struct store *store, struct loop *home, struct lease_request *request);

/* Give it back; the others hear of it. Frees itself. */
void lease_give_back(struct store *store, struct loop *home, const struct lease_key *key);

#endif
