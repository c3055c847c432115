#include "store/long_reader.h"

#include "base/mem.h"
#include "store/bank_inner.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define IDLE_S 2 /* the connection is closed after this long without a question */

struct long_reader {
    char *path;
    struct database db; /* the thread's; open if `connected` */
    bool connected;
    pthread_t thread;
    struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct long_reader_task *first, **last;
        struct err refused; /* code ERR_NONE: nothing is */
        bool started, steps, ending;
        bool away[LONG_READER_PAUSES];
    } shared;
};

struct long_reader *long_reader_new(struct str path) {
    struct long_reader *reader = MEM_NEW(struct long_reader);
    pthread_condattr_t monotonic;
    reader->path = str_dup(path);
    reader->shared.last = &reader->shared.first;
    reader->shared.refused.code = ERR_NONE;
    reader->shared.away[LONG_READER_CLOSED] = true;
    pthread_mutex_init(&reader->shared.lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&reader->shared.changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return reader;
}

/* --- answers ------------------------------------------------------------------------------ */

static void tell_done(void *ctx) {
    struct long_reader_task *task = ctx;
    task->on_done(task->failed.code ? &task->failed : NULL, task->ctx);
}

static void answer(struct long_reader_task *task) {
    loop_post(task->home, &task->mail, tell_done, task);
}

/* With the lock. */
static void refuse_queue(struct long_reader *reader, const struct err *why) {
    for (struct long_reader_task *task = reader->shared.first, *next; task; task = next) {
        next = task->next;
        task->failed = *why;
        answer(task);
    }
    reader->shared.first = NULL;
    reader->shared.last = &reader->shared.first;
}

/* With the lock. */
static void append(struct long_reader *reader, struct long_reader_task *task) {
    task->next = NULL;
    *reader->shared.last = task;
    reader->shared.last = &task->next;
}

/* --- the thread --------------------------------------------------------------------------- */

static void disconnect(struct long_reader *reader) {
    if (reader->connected) database_close(&reader->db);
    reader->connected = false;
}

static bool connect_to(struct long_reader *reader, struct err *e) {
    if (reader->connected) return true;
    reader->db = (struct database){0};
    reader->connected = true;
    if (database_open_reader(&reader->db, reader->path, e) && bank_open(&reader->db, e))
        return true;
    disconnect(reader);
    return false;
}

/* Without the lock. Returns whether there is more to do. */
static bool take_step(struct long_reader *reader, struct long_reader_task *task) {
    struct err e;
    bool more = false;
    if (!connect_to(reader, &e) || !task->step(&reader->db, task->ctx, &more, &e)) {
        task->failed = e;
        return false;
    }
    return more;
}

static bool is_away(const struct long_reader *reader) {
    return reader->shared.away[LONG_READER_LOOKS_AWAY] ||
           reader->shared.away[LONG_READER_CLOSED];
}

/* With the lock: sleep until there is a question, or something else to do. */
static void rest(struct long_reader *reader) {
    struct timespec until;
    if (reader->connected && !reader->shared.first) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += IDLE_S;
        if (!pthread_cond_timedwait(&reader->shared.changed, &reader->shared.lock, &until))
            return;
        disconnect(reader);
    } else {
        pthread_cond_wait(&reader->shared.changed, &reader->shared.lock);
    }
}

/* With the lock, which is let go meanwhile. */
static void serve_one(struct long_reader *reader) {
    struct long_reader_task *task = reader->shared.first;
    reader->shared.first = task->next;
    if (!reader->shared.first) reader->shared.last = &reader->shared.first;
    reader->shared.steps = true;
    pthread_mutex_unlock(&reader->shared.lock);
    bool more = take_step(reader, task);
    pthread_mutex_lock(&reader->shared.lock);
    reader->shared.steps = false;
    pthread_cond_broadcast(&reader->shared.changed);
    if (more) {
        append(reader, task);
    } else {
        answer(task);
    }
}

static void *reader_thread(void *ctx) {
    struct long_reader *reader = ctx;
    pthread_mutex_lock(&reader->shared.lock);
    while (!reader->shared.ending) {
        if (reader->shared.away[LONG_READER_CLOSED] && reader->connected) {
            disconnect(reader);
            pthread_cond_broadcast(&reader->shared.changed);
        } else if (reader->shared.first && !is_away(reader)) {
            serve_one(reader);
        } else {
            rest(reader);
        }
    }
    disconnect(reader);
    pthread_mutex_unlock(&reader->shared.lock);
    return NULL;
}

void long_reader_free(struct long_reader *reader) {
    struct err why;
    if (!reader) return;
    pthread_mutex_lock(&reader->shared.lock);
    reader->shared.ending = true;
    pthread_cond_broadcast(&reader->shared.changed);
    bool started = reader->shared.started;
    pthread_mutex_unlock(&reader->shared.lock);
    if (started) pthread_join(reader->thread, NULL);
    err_set(&why, ERR_UNAVAILABLE, "store %s: it is closing", reader->path);
    refuse_queue(reader, &why);
    pthread_cond_destroy(&reader->shared.changed);
    pthread_mutex_destroy(&reader->shared.lock);
    free(reader->path);
    free(reader);
}

/* --- from other threads ------------------------------------------------------------------- */

static void reader_start(struct long_reader *reader) {
    if (reader->shared.started) return;
    int failed = pthread_create(&reader->thread, NULL, reader_thread, reader);
    assert(!failed);
    (void)failed;
    reader->shared.started = true;
}

void long_reader_ask(struct long_reader *reader, struct long_reader_task *task) {
    assert(task->home && task->step && task->on_done);
    task->failed.code = ERR_NONE;
    pthread_mutex_lock(&reader->shared.lock);
    assert(!reader->shared.ending);
    if (reader->shared.refused.code) {
        task->failed = reader->shared.refused;
        answer(task);
    } else {
        reader_start(reader);
        append(reader, task);
        pthread_cond_broadcast(&reader->shared.changed);
    }
    pthread_mutex_unlock(&reader->shared.lock);
}

void long_reader_pause(struct long_reader *reader, enum long_reader_pause how) {
    if (!reader) return;
    pthread_mutex_lock(&reader->shared.lock);
    reader->shared.away[how] = true;
    pthread_cond_broadcast(&reader->shared.changed);
    while (reader->shared.steps || (how == LONG_READER_CLOSED && reader->connected))
        pthread_cond_wait(&reader->shared.changed, &reader->shared.lock);
    pthread_mutex_unlock(&reader->shared.lock);
}

void long_reader_resume(struct long_reader *reader, enum long_reader_pause how) {
    if (!reader) return;
    pthread_mutex_lock(&reader->shared.lock);
    reader->shared.away[how] = false;
    if (how == LONG_READER_CLOSED) reader->shared.refused.code = ERR_NONE;
    pthread_cond_broadcast(&reader->shared.changed);
    pthread_mutex_unlock(&reader->shared.lock);
}

void long_reader_refuse(struct long_reader *reader, const struct err *why) {
    pthread_mutex_lock(&reader->shared.lock);
    reader->shared.refused = *why;
    refuse_queue(reader, why);
    pthread_mutex_unlock(&reader->shared.lock);
}
