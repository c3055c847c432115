/* inner: the account, for the files that implement it. Private to contract/nimi/account. */
#ifndef WEIR_CONTRACT_NIMI_ACCOUNT_INNER_H
#define WEIR_CONTRACT_NIMI_ACCOUNT_INNER_H

#include "base/text.h"
#include "contract/nimi/account/account.h"

#include <pthread.h>

enum attempt_use {
    ATTEMPT_OPEN,
    ATTEMPT_CHECKED, /* its proof is being checked; it does not expire meanwhile */
    ATTEMPT_USED,
};

struct attempt {
    struct list link; /* in account->attempts, the one begun first first */
    struct account_attempt shown;
    struct text app, app_instance;
    uint64_t expires_ms;
    enum attempt_use use;
};

struct nimi_account {
    pthread_mutex_t lock; /* guards the rest */
    enum account_state state;
    enum account_state before_login; /* where a login that fails goes back to */
    int reason;                      /* of the state */
    bool known;                      /* the state is what the store has */
    bool writing;                    /* a change is on its way to the disk */
    uint64_t retry_ms;               /* while not known: when to read again */
    struct text subject, issuer;     /* no text: no one is logged in */
    uint64_t expires_ms;             /* of the account, in the loop's time */
    int64_t expires_unix_ms;
    struct text token, scope, session; /* of the login; a restart forgets them */
    struct list attempts;
    size_t attempt_count;
    struct bindings bindings;
    struct store *store;
    struct topic *topic;                /* NULL until the store was first read */
    uint64_t kept[ACCOUNT_EVENTS_KEPT]; /* the numbers of the events on disk, in a ring */
    size_t kept_count, kept_at;
};

/* The rest needs the lock. */

/* Publish an event, and keep it. binding  NULL: about the account */
void account_publish(struct nimi_account *account, enum nimi_account_event_type type,
                     int reason, const struct binding *binding, const struct account_now *now);

/* Publish the state, with why. */
void account_publish_status(struct nimi_account *account, int reason,
                            const struct account_now *now);

/* The only function that changes account->state. */
void account_move(struct nimi_account *account, enum account_state next);

/* End one, and forget it. */
void account_end_binding(struct nimi_account *account, struct binding *binding,
                         enum binding_state next, enum nimi_account_event_type type, int reason,
                         const struct account_now *now);

/* Forget who is logged in. */
void account_forget(struct nimi_account *account);

/* The time of the loop at which `unix_ms` is. */
uint64_t account_loop_time(int64_t unix_ms, const struct account_now *now);

/* Let a binding's record be written, or deleted. */
void account_keep_binding(struct nimi_account *account, const struct binding *binding,
                          bool gone, const struct account_now *now);

#endif
