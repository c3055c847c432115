#include "store/searches.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/sharing.h"
#include "base/text.h"
#include "store/reply.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define IDLE_S 30     /* a connection is closed after this long without a search */
#define AGAIN_MS 1000 /* a search that failed within this time is asked once more */

#define REFUSAL "too many searches of this workspace run or wait already"

/* One search: from being asked until a thread has it. */
struct search {
    struct sharing_item place;
    struct store_task *task;
    uint64_t asked_ms;
};

/* A thread, and the connection that is its own. */
struct searcher {
    struct searches *searches;
    pthread_t thread;
    struct database db;
    bool connected;
};

struct searches {
    struct text url, schema;
    size_t limit;
    struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct sharing *sharing;
        size_t started, idle; /* threads */
        size_t waiting;       /* searches */
        bool ending;
    } shared;
    struct searcher all[SEARCHES_CONNECTIONS_MAX];
};

/* --- answers ------------------------------------------------------------------------------ */

static void searches_answer(struct store_task *task) {
    task->next = NULL;
    reply_tasks(task);
}

static void searches_refuse(struct store_task *task, enum err_code code, const char *why) {
    err_set(&task->failed, code, "store: %s", why);
    searches_answer(task);
}

/* --- one search --------------------------------------------------------------------------- */

static void disconnect(struct searcher *searcher) {
    if (searcher->connected) database_close(&searcher->db);
    searcher->connected = false;
}

static bool connect_to(struct searcher *searcher, struct err *e) {
    const struct searches *searches = searcher->searches;
    const struct postgres_session_options options = {.url = text_str(searches->url),
                                                     .schema = text_str(searches->schema),
                                                     .timeout_ms = SEARCHES_RUN_MS};
    if (searcher->connected) return true;
    searcher->db = (struct database){0};
    searcher->connected = true;
    if (database_open_postgres(&searcher->db, &options, e)) return true;
    disconnect(searcher);
    return false;
}

/* *ret_lost: its connection has broken. */
static bool run_once(struct searcher *searcher, struct store_task *task, bool *ret_lost,
                     struct err *e) {
    if (!connect_to(searcher, e)) return false;
    bool ok = task->fn(&searcher->db, task->ctx, e);
    *ret_lost = searcher->db.sync_failed || postgres_session_broken(searcher->db.postgres);
    if (*ret_lost) disconnect(searcher);
    return ok;
}

static bool is_ending(struct searches *searches) {
    pthread_mutex_lock(&searches->shared.lock);
    bool ending = searches->shared.ending;
    pthread_mutex_unlock(&searches->shared.lock);
    return ending;
}

/* Once more when the connection was lost: the server may have ended it long before. Not when the
 * server has kept silent for long: it would do so again. */
static void run(struct searcher *searcher, struct store_task *task) {
    struct err e = {0};
    bool lost = false;
    uint64_t began_ms = clock_mono_ms();
    if (run_once(searcher, task, &lost, &e)) return;
    bool again =
        lost && clock_mono_ms() - began_ms < AGAIN_MS && !is_ending(searcher->searches);
    if (again && run_once(searcher, task, &lost, &e)) return;
    task->failed = e;
}

/* --- the threads -------------------------------------------------------------------------- */

/* With the lock, which is let go meanwhile. */
static void search_serve(struct searcher *searcher, struct search *search) {
    struct searches *searches = searcher->searches;
    struct store_task *task = search->task;
    bool late = clock_mono_ms() - search->asked_ms > SEARCHES_WAIT_MS;
    searches->shared.waiting--;
    pthread_mutex_unlock(&searches->shared.lock);
    if (!late) run(searcher, task);
    pthread_mutex_lock(&searches->shared.lock);
    sharing_leave(searches->shared.sharing, &search->place);
    pthread_cond_broadcast(&searches->shared.changed);
    free(search);
    if (late)
        searches_refuse(task, ERR_UNAVAILABLE,
                        "the server did not get round to it in time; try again later");
    else
        searches_answer(task);
}

/* With the lock: sleep until there may be a search. */
static void search_wait(struct searcher *searcher) {
    struct searches *searches = searcher->searches;
    struct timespec until;
    searches->shared.idle++;
    if (searcher->connected) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += IDLE_S;
        if (pthread_cond_timedwait(&searches->shared.changed, &searches->shared.lock, &until))
            disconnect(searcher);
    } else {
        pthread_cond_wait(&searches->shared.changed, &searches->shared.lock);
    }
    searches->shared.idle--;
}

static void *searcher_thread(void *ctx) {
    struct searcher *searcher = ctx;
    struct searches *searches = searcher->searches;
    pthread_mutex_lock(&searches->shared.lock);
    while (!searches->shared.ending) {
        struct sharing_item *next = sharing_next(searches->shared.sharing);
        if (next)
            search_serve(searcher, CONTAINER_OF(next, struct search, place));
        else
            search_wait(searcher);
    }
    pthread_mutex_unlock(&searches->shared.lock);
    disconnect(searcher);
    return NULL;
}

/* With the lock. */
static void searcher_start(struct searches *searches) {
    struct searcher *searcher = &searches->all[searches->shared.started];
    searcher->searches = searches;
    int failed = pthread_create(&searcher->thread, NULL, searcher_thread, searcher);
    assert(!failed);
    (void)failed;
    searches->shared.started++;
}

/* --- from other threads ------------------------------------------------------------------- */

void searches_ask(struct searches *searches, struct store_task *task) {
    struct search *search = MEM_NEW(struct search);
    *search = (struct search){.task = task, .asked_ms = clock_mono_ms()};
    pthread_mutex_lock(&searches->shared.lock);
    assert(!searches->shared.ending);
    bool entered = sharing_enter(searches->shared.sharing, task->search_of, &search->place);
    searches->shared.waiting += entered;
    if (searches->shared.waiting > searches->shared.idle &&
        searches->shared.started < searches->limit)
        searcher_start(searches);
    pthread_cond_broadcast(&searches->shared.changed);
    pthread_mutex_unlock(&searches->shared.lock);
    if (entered) return;
    free(search);
    searches_refuse(task, ERR_RESOURCE_EXHAUSTED, REFUSAL "; ask again when they are answered");
}

bool searches_refused(const struct err *failed) {
    return failed && failed->code == ERR_RESOURCE_EXHAUSTED &&
           str_starts(err_text(failed), STR("store: " REFUSAL));
}

/* --- life --------------------------------------------------------------------------------- */

struct searches *searches_new(struct str url, struct str schema, size_t connections) {
    struct searches *searches = MEM_NEW(struct searches);
    pthread_condattr_t monotonic;
    assert(connections && connections <= SEARCHES_CONNECTIONS_MAX);
    searches->url = text_copy(url);
    searches->schema = text_copy(schema);
    searches->limit = connections;
    searches->shared.sharing = sharing_new(connections, SEARCHES_OWNER_MAX);
    pthread_mutex_init(&searches->shared.lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&searches->shared.changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return searches;
}

static void refuse_waiting(struct searches *searches) {
    struct sharing_item *waiting;
    while ((waiting = sharing_any_waiting(searches->shared.sharing))) {
        struct search *search = CONTAINER_OF(waiting, struct search, place);
        struct store_task *task = search->task;
        sharing_leave(searches->shared.sharing, waiting);
        searches->shared.waiting--;
        free(search);
        searches_refuse(task, ERR_UNAVAILABLE, "it is closing");
    }
}

void searches_free(struct searches *searches) {
    if (!searches) return;
    pthread_mutex_lock(&searches->shared.lock);
    searches->shared.ending = true;
    refuse_waiting(searches);
    pthread_cond_broadcast(&searches->shared.changed);
    pthread_mutex_unlock(&searches->shared.lock);
    for (size_t i = 0; i < searches->shared.started; i++)
        pthread_join(searches->all[i].thread, NULL);
    sharing_free(searches->shared.sharing);
    pthread_cond_destroy(&searches->shared.changed);
    pthread_mutex_destroy(&searches->shared.lock);
    text_done(&searches->url);
    text_done(&searches->schema);
    free(searches);
}
