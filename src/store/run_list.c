#include "store/run_list.h"

#include "base/arena.h"
#include "base/mem.h"
#include "store/task.h"

#include <assert.h>
#include <stdlib.h>

#define TEXT_MAX_BYTES (16 * MIB)

enum { ID, PARENT, STATE, STARTED, ENDED, CONTRACT, WORKSPACE, USER, SESSION };

struct run_list_ask {
    struct store_task task;
    struct buf asked; /* owns the filter's texts */
    struct run_list_filter filter;
    struct arena *arena; /* holds the page; rebuilt each time the task runs */
    struct listed_run *runs;
    struct run_list_page page;
    run_listed_fn *done; /* NULL: cancelled */
    void *ctx;
};

static void run_list_done(const struct err *failed, void *ctx) {
    struct run_list_ask *ask = ctx;
    if (ask->done) ask->done(&ask->page, failed, ask->ctx);
    buf_done(&ask->asked);
    arena_free(ask->arena);
    free(ask->runs);
    free(ask);
}

void run_list_forget(struct run_list_ask *ask) {
    if (ask) ask->done = NULL;
}

static bool is_same(struct str wanted, struct prepared *row, int column) {
    return !wanted.at || str_equal(database_bytes(row, column), wanted);
}

static bool run_list_is_wanted(const struct run_list_filter *filter, struct prepared *row) {
    return (filter->state < 0 || database_number_of(row, STATE) == filter->state) &&
           is_same(filter->workspace, row, WORKSPACE) && is_same(filter->user, row, USER) &&
           is_same(filter->session, row, SESSION) && is_same(filter->contract, row, CONTRACT);
}

static bool take_run(struct run_list_ask *ask, struct prepared *row) {
    struct listed_run run = {.id = (uint64_t)database_number_of(row, ID),
                             .parent = (uint64_t)database_number_of(row, PARENT),
                             .state = database_number_of(row, STATE),
                             .started_ms = database_number_of(row, STARTED),
                             .ended_ms = database_number_of(row, ENDED)};
    if (!arena_str(ask->arena, database_bytes(row, CONTRACT), &run.contract) ||
        !arena_str(ask->arena, database_bytes(row, WORKSPACE), &run.workspace) ||
        !arena_str(ask->arena, database_bytes(row, USER), &run.user) ||
        !arena_str(ask->arena, database_bytes(row, SESSION), &run.session))
        return false;
    ask->runs[ask->page.count++] = run;
    return true;
}

/* A page ends when it is full or enough rows were scanned. The next page continues there. */
static void walk_runs(struct run_list_ask *ask, struct database_rows *list, struct err *e) {
    size_t looked = 0;
    while (database_next(list, e)) {
        bool full = ask->page.count == ask->filter.limit || looked == RUN_LIST_LOOK_MAX;
        if (full || (run_list_is_wanted(&ask->filter, list->row) && !take_run(ask, list->row)))
            return;
        ask->page.next = (uint64_t)database_number_of(list->row, ID);
        looked++;
    }
    ask->page.next = 0;
}

static bool run_list_run(struct database *db, void *ctx, struct err *e) {
    struct run_list_ask *ask = ctx;
    arena_free(ask->arena);
    ask->arena = arena_new(TEXT_MAX_BYTES);
    ask->page = (struct run_list_page){.runs = ask->runs};
    struct database_rows list = database_ask(
        db,
        "SELECT run.id, parent, state, started_ms, ended_ms, contract,"
        " workspace, user, name FROM run"
        " LEFT JOIN session ON session.id = run.session"
        " WHERE run.id < ? ORDER BY run.id DESC LIMIT ?",
        VALUES(sql_number(ask->filter.before ? (int64_t)ask->filter.before : INT64_MAX),
               sql_number(RUN_LIST_LOOK_MAX + 1)), /* PostgreSQL sends all at once */
        e);
    walk_runs(ask, &list, e);
    return database_end(&list);
}

struct run_list_ask *run_list_start(struct store *store, struct loop *loop,
                                    const struct run_list_filter *filter, run_listed_fn *done,
                                    void *ctx) {
    assert(filter->limit > 0 && filter->limit <= RUN_LIST_MAX);
    struct run_list_ask *ask = MEM_NEW(struct run_list_ask);
    *ask = (struct run_list_ask){.done = done, .ctx = ctx};
    ask->filter = *filter;
    struct str *const texts[] = {&ask->filter.workspace, &ask->filter.user,
                                 &ask->filter.session, &ask->filter.contract};
    buf_keep_texts(&ask->asked, texts, ARRAY_LEN(texts));
    ask->runs = mem_zero(filter->limit, sizeof(*ask->runs));
    ask->task = (struct store_task){
        .fn = run_list_run, .reads_only = true, .needs_tables = true, .on_done = run_list_done};
    store_run(store, loop, &ask->task, ask);
    return ask;
}
