#include "orchestrator/query.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

#define VALUES_MAX_BYTES (32 * MIB)
#define AGAIN_MS 1000

struct query {
    struct postgres_request request;
    struct postgres_step steps[POSTGRES_STEPS_MAX];
    struct arena *arena;
    struct queries *database;
    struct timer again; /* of a steadfast one */
    struct list link;   /* in database->again while it waits for that */
    uint64_t give_up_ms;
    enum query_kind kind;
    query_done_fn *done;
    void *ctx;
};

struct query *query_new(void) {
    struct query *query = MEM_NEW(struct query);
    query->arena = arena_new(VALUES_MAX_BYTES);
    list_init(&query->link);
    return query;
}

static void query_free(struct query *query) {
    timer_stop(&query->again);
    arena_free(query->arena);
    free(query);
}

/* Bodies and answers are limited far below the arena. PostgreSQL's text holds no NUL, which a
 * runtime may say. */
static struct postgres_value kept(struct query *query, struct postgres_value value) {
    if (value.type != POSTGRES_TEXT && value.type != POSTGRES_BYTES) return value;
    char *own = arena_alloc(query->arena, value.bytes.len + 1);
    if (!own) value.bytes = STR_EMPTY;
    for (size_t i = 0; i < value.bytes.len; i++) {
        bool nul = value.type == POSTGRES_TEXT && value.bytes.at[i] == '\0';
        own[i] = nul ? '?' : value.bytes.at[i];
    }
    value.bytes.at = own ? own : "";
    return value;
}

void query_drop(struct query *query) {
    query_free(query);
}

void query_step(struct query *query, const char *sql, const struct postgres_value *values,
                size_t count) {
    assert(query->request.step_count < POSTGRES_STEPS_MAX && count <= POSTGRES_VALUES_MAX);
    struct postgres_value *own = arena_alloc(query->arena, (count + 1) * sizeof(*own));
    assert(own);
    for (size_t i = 0; i < count; i++) own[i] = kept(query, values[i]);
    query->steps[query->request.step_count++] =
        (struct postgres_step){.sql = sql, .value_count = count, .values = own};
}

static bool may_help(enum err_code code) {
    return code == ERR_UNAVAILABLE || code == ERR_OUTCOME_UNKNOWN ||
           code == ERR_DEADLINE_EXCEEDED || code == ERR_ABORTED;
}

static void query_end(struct query *query, const struct err *failed) {
    if (failed) log_often(LOG_WARNING, "the database: %s", failed->text);
    query->done(failed ? NULL : &query->request, failed, query->ctx);
    query_free(query);
}

static void query_on_done(struct postgres_request *request, const struct err *failed,
                          void *ctx) {
    struct query *query = ctx;
    (void)request;
    bool again = failed && query->kind == QUERY_STEADFAST && may_help(failed->code) &&
                 loop_now_ms(query->database->loop) < query->give_up_ms &&
                 postgres_state(query->database->postgres) != POSTGRES_CLOSED;
    if (!again) {
        query_end(query, failed);
        return;
    }
    list_append(&query->database->again, &query->link);
    timer_start(&query->again, AGAIN_MS);
}

static void query_ask_again(void *ctx) {
    struct query *query = ctx;
    list_remove(&query->link);
    postgres_ask(query->database->postgres, &query->request);
}

void query_ask(struct query *query, struct queries *database, enum query_kind kind,
               query_done_fn *done, void *ctx) {
    query->database = database;
    query->kind = kind;
    query->done = done;
    query->ctx = ctx;
    timer_init(&query->again, database->loop, query_ask_again, query);
    query->give_up_ms = loop_now_ms(database->loop) + QUERY_STEADFAST_MS;
    query->request.steps = query->steps;
    query->request.repeatable = kind != QUERY_ONCE;
    query->request.on_done = query_on_done;
    query->request.ctx = query;
    postgres_ask(database->postgres, &query->request);
}

void queries_open(struct queries *database, struct loop *loop,
                  const struct postgres_options *options) {
    database->loop = loop;
    database->readers = NULL;
    list_init(&database->again);
    database->postgres = postgres_open(options);
}

void queries_close(struct queries *database, task_fn *closed, void *ctx) {
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "the orchestrator stops");
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left the list */
    LIST_EACH(&database->again, link) {
        list_remove(link);
        query_end(CONTAINER_OF(link, struct query, link), &e);
    }
    postgres_close(database->postgres, closed, ctx);
}
