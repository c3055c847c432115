#include "store/sweep.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "object/remove.h"
#include "store/doomed.h"
#include "store/task.h"

#include <stdlib.h>

#define ROWS_MAX 32 /* of one look */
#define ROWS_TEXT_BYTES ((size_t)ROWS_MAX * 2 * KIB)

struct doomed_row {
    struct str object;
    int64_t flags;
    bool gone;
};

/* One look, or one forgetting; it outlives a sweep that was stopped. */
struct sweep_ask {
    struct store_task task;
    struct sweep *sweep;      /* NULL: stopped */
    int64_t now_ms, again_ms; /* of the look; when what stays is due again */
    struct arena *arena;      /* made again by each run of the task */
    struct doomed_row rows[ROWS_MAX];
    size_t count;
};

struct sweep {
    struct store *store;
    struct bucket *bucket;
    struct loop *loop;
    uint64_t period_ms;
    struct timer timer;
    struct sweep_ask *ask; /* NULL: resting */
    struct object_remove *remove;
    size_t next; /* the row that is being deleted */
};

/* --- the store's part --------------------------------------------------------------------- */

static bool sweep_look(struct database *db, void *ctx, struct err *e) {
    struct sweep_ask *ask = ctx;
    arena_free(ask->arena);
    ask->arena = arena_new(ROWS_TEXT_BYTES);
    ask->count = 0;
    struct database_rows list =
        database_ask(db,
                     "SELECT object, flags FROM object_doomed WHERE due_ms <= ?"
                     " ORDER BY due_ms LIMIT ?",
                     VALUES(sql_number(ask->now_ms), sql_number(ROWS_MAX)), e);
    while (database_next(&list, e)) {
        struct doomed_row *to = &ask->rows[ask->count++];
        *to = (struct doomed_row){.flags = database_number_of(list.row, 1)};
        list.ok = arena_str(ask->arena, database_bytes(list.row, 0), &to->object) ||
                  err_set(e, ERR_TOO_LARGE, "the names of objects are too long");
    }
    return database_end(&list);
}

/* What stays is due after all that is due now: a few objects that can never be deleted must not be
 * all that a look finds. It may be gone nevertheless, so it stays given up (doomed_take()). */
static bool put_off(struct database *db, const struct doomed_row *row, int64_t again_ms,
                    struct err *e) {
    return database_run_with(db,
                             "UPDATE object_doomed SET due_ms = ?, flags = ? WHERE object = ?",
                             VALUES(sql_number(again_ms), sql_number(row->flags | DOOMED_TRIED),
                                    sql_bytes(row->object)),
                             e);
}

static bool sweep_forget(struct database *db, void *ctx, struct err *e) {
    const struct sweep_ask *ask = ctx;
    bool ok = true;
    for (size_t i = 0; ok && i < ask->count; i++) {
        const struct doomed_row *row = &ask->rows[i];
        if (row->gone)
            ok = database_run_with(db, "DELETE FROM object_doomed WHERE object = ?",
                                   VALUES(sql_bytes(row->object)), e);
        else
            ok = put_off(db, row, ask->again_ms, e);
    }
    return ok;
}

static void ask_free(struct sweep_ask *ask) {
    arena_free(ask->arena);
    free(ask);
}

/* --- a round ------------------------------------------------------------------------------ */

static void look(void *ctx);

static void sweep_rest(struct sweep *sweep) {
    if (sweep->ask) ask_free(sweep->ask);
    sweep->ask = NULL;
    timer_start(&sweep->timer, sweep->period_ms);
}

static void on_forgotten(const struct err *failed, void *ctx) {
    struct sweep_ask *ask = ctx;
    struct sweep *sweep = ask->sweep;
    size_t gone = 0;
    if (!sweep) {
        ask_free(ask);
        return;
    }
    for (size_t i = 0; i < ask->count; i++) gone += ask->rows[i].gone;
    bool more = !failed && gone == ask->count;
    sweep_rest(sweep);
    if (more) timer_start(&sweep->timer, 0);
}

static void delete_next(struct sweep *sweep);

static void on_removed(const struct err *failed, void *ctx) {
    struct sweep *sweep = ctx;
    sweep->remove = NULL;
    if (failed)
        log_often(LOG_WARNING, "an object that is to be deleted stays until the next round: %s",
                  failed->text);
    sweep->ask->rows[sweep->next++].gone = !failed;
    delete_next(sweep);
}

static void delete_next(struct sweep *sweep) {
    struct sweep_ask *ask = sweep->ask;
    if (sweep->next < ask->count) {
        const struct doomed_row *row = &ask->rows[sweep->next];
        sweep->remove = object_remove_start(sweep->bucket, sweep->loop, row->object,
                                            row->flags & DOOMED_PARTS ? REMAINS_OBJECT_AND_PARTS
                                                                      : REMAINS_OBJECT,
                                            on_removed, sweep);
        return;
    }
    ask->task.fn = sweep_forget;
    ask->task.reads_only = false;
    ask->task.on_done = on_forgotten;
    store_run(sweep->store, sweep->loop, &ask->task, ask);
}

static void on_seen(const struct err *failed, void *ctx) {
    struct sweep_ask *ask = ctx;
    struct sweep *sweep = ask->sweep;
    if (!sweep) {
        ask_free(ask);
    } else if (failed || ask->count == 0) {
        sweep_rest(sweep);
    } else {
        sweep->next = 0;
        delete_next(sweep);
    }
}

static void look(void *ctx) {
    struct sweep *sweep = ctx;
    struct sweep_ask *ask = sweep->ask = MEM_NEW(struct sweep_ask);
    ask->sweep = sweep;
    ask->now_ms = clock_unix_ms();
    ask->again_ms = ask->now_ms + (int64_t)sweep->period_ms;
    ask->task = (struct store_task){.reads_only = true, .fn = sweep_look, .on_done = on_seen};
    store_run(sweep->store, sweep->loop, &ask->task, ask);
}

/* --- the owner ---------------------------------------------------------------------------- */

struct sweep *sweep_start(struct store *store, struct bucket *bucket, struct loop *loop,
                          uint64_t period_ms) {
    struct sweep *sweep = MEM_NEW(struct sweep);
    sweep->store = store;
    sweep->bucket = bucket;
    sweep->loop = loop;
    sweep->period_ms = period_ms;
    timer_init(&sweep->timer, loop, look, sweep);
    timer_start(&sweep->timer, 0);
    return sweep;
}

void sweep_stop(struct sweep *sweep) {
    if (!sweep) return;
    timer_stop(&sweep->timer);
    if (sweep->remove) {
        object_remove_cancel(sweep->remove);
        ask_free(sweep->ask); /* no task of it is under way */
    } else if (sweep->ask) {
        sweep->ask->sweep = NULL;
    }
    free(sweep);
}
