#include "orchestrator/readers.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/sharing.h"

#include <assert.h>
#include <stdlib.h>

#define REFUSAL "too many reads"

struct reading {
    struct readers *readers;
    struct sharing_item place;
    struct list refused;  /* in readers->refused */
    struct timer late;    /* while it waits; at once when it is refused */
    struct reader *where; /* NULL: it has no connection yet */
    struct query *query;
    query_done_fn *done;
    void *ctx;
};

struct reader {
    struct readers *readers;
    struct queries database;
    struct reading *reading; /* NULL: it is free */
};

struct readers {
    struct loop *loop;
    struct postgres_options database;
    struct sharing *sharing;
    struct list refused;
    size_t most, limit, count;
    bool closed;
    struct reader all[READERS_CONNECTIONS_MAX]; /* `count` are open, of `limit` */
};

/* --- connections --------------------------------------------------------------------------- */

static void share_out(struct readers *readers);

static void readers_on_state(const struct err *failed, void *ctx) {
    struct reader *reader = ctx;
    if (!failed) share_out(reader->readers);
}

static void reader_open(struct readers *readers) {
    struct reader *reader = &readers->all[readers->count++];
    struct postgres_options options = readers->database;
    reader->readers = readers;
    options.on_state = readers_on_state;
    options.ctx = reader;
    queries_open(&reader->database, readers->loop, &options);
}

static bool is_ready(const struct reader *reader) {
    return postgres_state(reader->database.postgres) == POSTGRES_READY;
}

/* A free connection that is ready. If none is ready at all, any free one: what is asked there
 * fails soon, with the reason. */
static struct reader *free_reader(struct readers *readers) {
    struct reader *any = NULL;
    bool ready = false;
    for (size_t i = 0; i < readers->count; i++) {
        struct reader *reader = &readers->all[i];
        ready = ready || is_ready(reader);
        if (reader->reading) continue;
        if (is_ready(reader)) return reader;
        any = reader;
    }
    return ready ? NULL : any;
}

/* One more is opened before it is waited for. */
static struct reader *find_reader(struct readers *readers) {
    struct reader *reader = free_reader(readers);
    if (reader || readers->count == readers->limit) return reader;
    reader_open(readers);
    return free_reader(readers);
}

/* --- reads --------------------------------------------------------------------------------- */

static void readers_on_done(const struct postgres_request *rows, const struct err *failed,
                            void *ctx) {
    struct reading *reading = ctx;
    struct readers *readers = reading->readers;
    reading->where->reading = NULL;
    sharing_leave(readers->sharing, &reading->place);
    reading->done(rows, failed, reading->ctx);
    free(reading);
    if (!readers->closed) share_out(readers);
}

static void reading_begin(struct reading *reading, struct reader *reader) {
    timer_stop(&reading->late);
    reading->where = reader;
    reader->reading = reading;
    query_ask(reading->query, &reader->database, QUERY_REPEATABLE, readers_on_done, reading);
}

static void share_out(struct readers *readers) {
    while (sharing_may_next(readers->sharing)) {
        struct reader *reader = find_reader(readers);
        if (!reader) return;
        struct sharing_item *next = sharing_next(readers->sharing);
        reading_begin(CONTAINER_OF(next, struct reading, place), reader);
    }
}

/* It was never asked. */
static void reading_fail(struct reading *reading, const struct err *why) {
    timer_stop(&reading->late);
    list_remove(&reading->refused);
    sharing_leave(reading->readers->sharing, &reading->place);
    query_drop(reading->query);
    reading->done(NULL, why, reading->ctx);
    free(reading);
}

static void reading_late(void *ctx) {
    struct reading *reading = ctx;
    const struct readers *readers = reading->readers;
    struct err why;
    if (list_linked(&reading->refused))
        err_set(&why, ERR_RESOURCE_EXHAUSTED,
                REFUSAL " at once: %zu run or wait for the database already; ask again when "
                        "they are answered",
                readers->most);
    else
        err_set(&why, ERR_UNAVAILABLE, "the database did not get round to it in time");
    reading_fail(reading, &why);
}

/* No user has a workspace's line. */
static bool reading_enter(struct reading *reading, const struct read_owner *owner) {
    bool workspace = owner->workspace.len > 0;
    struct buf name;
    buf_init(&name, owner->workspace.len + owner->user.len + 1);
    buf_append_byte(&name, workspace ? 'w' : 'u');
    buf_append(&name, workspace ? owner->workspace : owner->user);
    bool entered = sharing_enter(reading->readers->sharing, buf_str(&name), &reading->place);
    buf_done(&name);
    return entered;
}

void readers_ask(struct readers *readers, const struct read_owner *owner, struct query *query,
                 query_done_fn *done, void *ctx) {
    struct reading *reading = MEM_NEW(struct reading);
    assert(!readers->closed);
    *reading = (struct reading){.readers = readers, .query = query, .done = done, .ctx = ctx};
    list_init(&reading->refused);
    timer_init(&reading->late, readers->loop, reading_late, reading);
    if (!reading_enter(reading, owner)) {
        list_append(&readers->refused, &reading->refused);
        timer_start(&reading->late, 0);
        return;
    }
    timer_start(&reading->late, READERS_WAIT_MS);
    share_out(readers);
}

bool readers_refused(const struct err *failed) {
    return failed && failed->code == ERR_RESOURCE_EXHAUSTED &&
           str_starts(err_text(failed), STR(REFUSAL));
}

/* --- life ---------------------------------------------------------------------------------- */

struct readers *readers_new(const struct readers_options *options) {
    struct readers *readers = MEM_NEW(struct readers);
    assert(options->connections && options->connections <= READERS_CONNECTIONS_MAX);
    readers->loop = options->loop;
    readers->database = *options->database;
    readers->limit = options->connections;
    readers->most = options->most;
    readers->sharing = sharing_new(options->connections, options->most);
    list_init(&readers->refused);
    return readers;
}

static void ignore_closed(void *ctx) {
    (void)ctx;
}

void readers_close(struct readers *readers) {
    struct sharing_item *waiting;
    struct list *refused;
    struct err why;
    err_set(&why, ERR_UNAVAILABLE, "the orchestrator stops");
    readers->closed = true;
    while ((refused = list_pop(&readers->refused)))
        reading_fail(CONTAINER_OF(refused, struct reading, refused), &why);
    while ((waiting = sharing_any_waiting(readers->sharing)))
        reading_fail(CONTAINER_OF(waiting, struct reading, place), &why);
    for (size_t i = 0; i < readers->count; i++)
        queries_close(&readers->all[i].database, ignore_closed, NULL);
}

void readers_free(struct readers *readers) {
    if (!readers) return;
    sharing_free(readers->sharing);
    free(readers);
}
