/* event_log: what happened to something, in order, for those who were away.
 *
 *     log     dropped │ 5 6 7 8 │ last = 8        5 to 8 are kept
 *
 * A log is named by its kind, its owner (an app and a subject) and a name. Its numbers rise by
 * one, usually from 1 on, and survive restarts. Events are appended in the transaction that changes the
 * thing they tell of, so an event is there exactly when its change is. Each kind of log keeps so
 * many events and bytes, and always the newest event.
 *
 * An event may have a body beside its bytes, or refer to a record of a bank (bank.h), whose body
 * is then read from the record: so a deleted record leaves no text in a log.
 *
 * Memory   requests are copied. A page is borrowed during the callback.
 * Threads  event_log_append(): the store's, in a task. Requests and answers: the caller's loop.
 * Source   contracts/nimi.md 6.7, 9 number 36, 10 "resume for memory and app streams".
 */
#ifndef WEIR_STORE_EVENT_LOG_H
#define WEIR_STORE_EVENT_LOG_H

#include "base/units.h"
#include "store/database.h"
#include "store/store.h"

/* Of whom something is: it is found only with the same two. */
struct store_owner {
    struct str app, subject; /* at most ID_MAX_BYTES each */
};

/* The numbers are on disk. */
enum event_log_kind { EVENT_LOG_MEMORY = 1, EVENT_LOG_AGENT = 2, EVENT_LOG_KINDS };

#define EVENT_LOG_MEMORY_EVENTS 10000
#define EVENT_LOG_MEMORY_BYTES (8 * MIB)
#define EVENT_LOG_AGENT_EVENTS 256
#define EVENT_LOG_AGENT_BYTES (1 * MIB)

struct event_log_key {
    enum event_log_kind kind;
    struct store_owner owner;
    struct str name; /* may be empty */
};

/* --- appending ---------------------------------------------------------------------------- */

#define EVENT_LOG_LABEL_MAX_BYTES 1024
#define EVENT_LOG_BYTES_MAX (128 * KIB) /* bytes and body of one event */

struct event_log_entry {
    struct str label; /* for readers that want some of the events */
    struct str bytes, body;
    int64_t record; /* of a bank: its body is the event's; 0: none */
};

/* Within the transaction of a task. */
MUST_CHECK bool event_log_append(struct database *db, const struct event_log_key *key,
                                 const struct event_log_entry *entries, size_t count,
                                 struct err *e);

/* Delete a log with its events. One of the same name continues above every number it had. */
MUST_CHECK bool event_log_delete(struct database *db, const struct event_log_key *key,
                                 struct err *e);

/* --- reading ------------------------------------------------------------------------------ */

#define EVENT_LOG_PAGE_EVENTS 512

struct event_log_event {
    uint64_t sequence;
    struct str label, bytes;
    struct str body; /* empty: it has none, or its record is gone */
};

struct event_log_page {
    const struct event_log_event *events; /* those after `after`, the oldest first */
    size_t count;
    bool more;        /* there are more than these */
    uint64_t first;   /* the number before the first event that there ever was */
    uint64_t dropped; /* the number before the first that is kept */
    uint64_t last;    /* the newest; all three are 0 if there is no such log yet */
};

/* Called once, on `loop`, never before the start function returns; failed is NULL on success. */
typedef void event_log_done_fn(const struct event_log_page *page, const struct err *failed,
                               void *ctx);

struct event_log_ask;

/* Read at most EVENT_LOG_PAGE_EVENTS events, and `max_bytes` of them or one event. An `after`
 * beyond the newest gives none, and says so by `last`. */
struct event_log_ask *event_log_read_start(struct store *store, struct loop *loop,
                                           const struct event_log_key *key, uint64_t after,
                                           size_t max_bytes, event_log_done_fn *done,
                                           void *ctx);

/* Stop waiting: `done` will not be called. NULL is fine. */
void event_log_forget(struct event_log_ask *ask);

#endif
