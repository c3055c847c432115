#include "store/replica_watch.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "postgres/session.h"
#include "store/changes.h"
#include "store/core_replica.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define RENEWALS 3   /* within a lease; no statement takes longer than the time between two */
#define AGAIN_MS 200 /* pause after a failed connection */
#define LOOK_MS 1000 /* a lost notification is made up for */

struct replica_watch {
    struct replica_watch_options options;
    struct postgres_session *session; /* NULL: to be made */
    int stop;                         /* an eventfd */
    atomic_bool stopping;
    bool over; /* this replica was fenced */
    uint64_t renew_ms, look_ms;
    pthread_t thread;
};

/* --- statements --------------------------------------------------------------------------- */

#define RENEW                                                                                  \
    "UPDATE replica SET until = clock_timestamp() + $2::BIGINT * interval '1 millisecond'"     \
    " WHERE id = $1 AND fenced = 0"

#define END_DEAD                                                                               \
    "SELECT pg_terminate_backend(a.pid) FROM replica r JOIN pg_stat_activity a"                \
    " ON a.pid = r.pid AND a.backend_start = r.begun"                                          \
    " WHERE r.until < clock_timestamp() AND r.id <> $1 AND $2::BIGINT > 0"

/* Leases of the dead that could not be freed count as well: they are freed by the next takeover. */
#define COUNT_DEAD                                                                             \
    "SELECT count(*) + (SELECT count(*) FROM lease WHERE holder = -$1) FROM replica"           \
    " WHERE until < clock_timestamp() AND id > 0 AND id <> $1 AND $2::BIGINT > 0"

#define COUNT_LIVING                                                                           \
    "SELECT count(*) FROM replica WHERE id > 0 AND fenced = 0 AND $1::BIGINT IS NOT NULL"      \
    " AND $2::BIGINT IS NOT NULL"

/* False when the connection broke, or the server refused. */
static bool watch_ask(struct replica_watch *watch, const char *sql, struct postgres_rows *ret) {
    struct err e;
    const struct postgres_value values[] = {postgres_int(watch->options.replica),
                                            postgres_int((int64_t)watch->options.lease_ms)};
    const struct postgres_step step = {
        .sql = sql, .value_count = ARRAY_LEN(values), .values = values};
    if (postgres_session_ask(watch->session, &step, ret, &e)) return true;
    log_often(LOG_WARNING, "replica: %s", e.text);
    return false;
}

static bool renew(struct replica_watch *watch) {
    struct postgres_rows rows;
    if (!watch_ask(watch, RENEW, &rows)) return false;
    watch->over = rows.affected == 0;
    postgres_session_free_rows(&rows);
    watch->renew_ms = clock_mono_ms() + watch->options.lease_ms / RENEWALS;
    return true;
}

static bool watch_count(struct replica_watch *watch, const char *sql, int64_t *ret) {
    struct postgres_rows rows;
    if (!watch_ask(watch, sql, &rows)) return false;
    *ret = postgres_number(rows, 0, 0);
    postgres_session_free_rows(&rows);
    return true;
}

static bool look_for_dead(struct replica_watch *watch) {
    struct postgres_rows rows;
    int64_t dead, living;
    if (!watch_ask(watch, END_DEAD, &rows)) return false;
    postgres_session_free_rows(&rows);
    if (!watch_count(watch, COUNT_DEAD, &dead) || !watch_count(watch, COUNT_LIVING, &living))
        return false;
    watch->options.living((size_t)living, watch->options.ctx);
    if (dead > 0) watch->options.died(watch->options.ctx);
    uint64_t every_ms = watch->options.lease_ms / RENEWALS;
    watch->look_ms = clock_mono_ms() + (every_ms < LOOK_MS ? every_ms : LOOK_MS);
    return true;
}

/* --- the connection ----------------------------------------------------------------------- */

static bool watch_listen(struct replica_watch *watch) {
    struct postgres_rows rows;
    struct err e;
    char sql[80];
    if (!watch_ask(watch,
                   "SELECT " REPLICA_CHANNEL
                   " WHERE $1::BIGINT IS NOT NULL AND $2::BIGINT IS NOT NULL",
                   &rows))
        return false;
    snprintf(sql, sizeof(sql), "LISTEN " STR_FMT, STR_ARG(postgres_content(rows, 0, 0)));
    postgres_session_free_rows(&rows);
    return postgres_session_run(watch->session, sql, &e);
}

static void watch_close(struct replica_watch *watch) {
    postgres_session_close(watch->session);
    watch->session = NULL;
}

/* What was committed between two connections was not heard of. */
static bool watch_open(struct replica_watch *watch) {
    struct err e;
    const struct postgres_session_options session = {.url = watch->options.url,
                                                     .schema = watch->options.schema,
                                                     .timeout_ms =
                                                         watch->options.lease_ms / RENEWALS};
    if (!postgres_session_open(&session, &watch->session, &e)) {
        log_often(LOG_WARNING, "replica: %s", e.text);
        watch->session = NULL;
        return false;
    }
    if (!watch_listen(watch)) return false;
    watch->renew_ms = watch->look_ms = 0;
    watch->options.changed(CHANGE_ANY, watch->options.ctx);
    return true;
}

/* --- the thread --------------------------------------------------------------------------- */

static void on_notified(struct str channel, struct str payload, void *ctx) {
    uint64_t *changed = ctx, what;
    (void)channel;
    if (!str_to_u64(payload, &what)) what = CHANGE_ANY;
    *changed = change_join(*changed, what);
}

static uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* False: the connection is of no use. */
static bool watch_turn(struct replica_watch *watch) {
    struct err e;
    uint64_t changed = 0;
    if (!watch->session && !watch_open(watch)) return false;
    uint64_t now_ms = clock_mono_ms();
    if (now_ms >= watch->renew_ms && !renew(watch)) return false;
    if (watch->over) return true;
    if (now_ms >= watch->look_ms && !look_for_dead(watch)) return false;
    uint64_t until_ms = earlier(watch->renew_ms, watch->look_ms);
    now_ms = clock_mono_ms();
    if (!postgres_session_wait(watch->session, until_ms > now_ms ? until_ms - now_ms : 0,
                               watch->stop, on_notified, &changed, &e))
        return false;
    if (changed & CHANGE_LEFT) watch->look_ms = 0;
    changed &= CHANGE_ANY | CHANGE_NAMES;
    if (changed & CHANGE_ANY) watch->options.changed(changed, watch->options.ctx);
    return true;
}

static void pause_watch(void) {
    const struct timespec pause = {.tv_nsec = AGAIN_MS * 1000000L};
    nanosleep(&pause, NULL);
}

static void *watch_work(void *ctx) {
    struct replica_watch *watch = ctx;
    while (!atomic_load(&watch->stopping) && !watch->over) {
        if (watch_turn(watch)) continue;
        watch_close(watch);
        pause_watch();
    }
    if (watch->over) watch->options.lost(watch->options.ctx);
    watch_close(watch);
    return NULL;
}

struct replica_watch *replica_watch_start(const struct replica_watch_options *options) {
    struct replica_watch *watch = MEM_NEW(struct replica_watch);
    sigset_t all, before;
    watch->options = *options;
    watch->stop = eventfd(0, EFD_CLOEXEC);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failed = pthread_create(&watch->thread, NULL, watch_work, watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert(!failed);
    (void)failed;
    return watch;
}

void replica_watch_stop(struct replica_watch *watch) {
    if (!watch) return;
    uint64_t one = 1;
    atomic_store(&watch->stopping, true);
    bool woken = write(watch->stop, &one, sizeof(one)) == sizeof(one);
    (void)woken; /* it wakes by itself within a lease */
    pthread_join(watch->thread, NULL);
    close(watch->stop);
    free(watch);
}
