#include "contract/nimi/scheduler.h"

#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#define DEFAULT_APP STR("_default")

/* An app that has tickets. */
struct app {
    char *name;
    size_t name_len; /* a caller may send any bytes, NUL too */
    unsigned used;
    size_t tickets;
};

struct scheduler {
    pthread_mutex_t lock;
    struct scheduler_limits limits;
    struct map *apps;
    struct list waiting; /* oldest first */
    size_t waiting_count;
    unsigned used;
};

struct ticket {
    struct scheduler *scheduler;
    struct list link; /* while it waits */
    struct app *app;
    struct loop *loop;
    struct mail mail;
    ticket_granted_fn *on_granted;
    void *ctx;
    uint64_t since_ms, waited_ms;
    bool granted, posted; /* posted: the mail is on its way */
    bool released;        /* meanwhile */
};

struct scheduler *scheduler_new(const struct scheduler_limits *limits) {
    struct scheduler *scheduler = MEM_NEW(struct scheduler);
    scheduler->limits = *limits;
    scheduler->apps = map_new();
    list_init(&scheduler->waiting);
    pthread_mutex_init(&scheduler->lock, NULL);
    return scheduler;
}

void scheduler_free(struct scheduler *scheduler) {
    if (!scheduler) return;
    assert(map_count(scheduler->apps) == 0);
    map_free(scheduler->apps);
    pthread_mutex_destroy(&scheduler->lock);
    free(scheduler);
}

/* --- under the lock ----------------------------------------------------------------------- */

static struct app *join_app(struct scheduler *scheduler, struct str name) {
    struct app *app = map_find(scheduler->apps, name);
    if (!app) {
        app = MEM_NEW(struct app);
        app->name = str_dup(name);
        app->name_len = name.len;
        map_put(scheduler->apps, name, app);
    }
    app->tickets++;
    return app;
}

static void leave_app(struct scheduler *scheduler, struct app *app) {
    if (--app->tickets) return;
    map_remove(scheduler->apps, str_of(app->name, app->name_len));
    free(app->name);
    free(app);
}

static bool has_room(const struct scheduler *scheduler, const struct app *app) {
    return scheduler->used < scheduler->limits.global && app->used < scheduler->limits.per_app;
}

static void grant(struct ticket *ticket) {
    ticket->granted = true;
    ticket->scheduler->used++;
    ticket->app->used++;
}

static void on_mail(void *ctx);

static void grant_waiting(struct scheduler *scheduler) {
    LIST_EACH(&scheduler->waiting, link) {
        struct ticket *ticket = CONTAINER_OF(link, struct ticket, link);
        if (!has_room(scheduler, ticket->app)) continue;
        list_remove(&ticket->link);
        scheduler->waiting_count--;
        grant(ticket);
        ticket->posted = true;
        loop_post(ticket->loop, &ticket->mail, on_mail, ticket);
    }
}

/* The ticket goes; who waits may take its place. */
static void end(struct ticket *ticket) {
    struct scheduler *scheduler = ticket->scheduler;
    if (ticket->granted) {
        scheduler->used--;
        ticket->app->used--;
    } else {
        list_remove(&ticket->link);
        scheduler->waiting_count--;
    }
    leave_app(scheduler, ticket->app);
    free(ticket);
    grant_waiting(scheduler);
}

/* --- tickets ------------------------------------------------------------------------------ */

static void on_mail(void *ctx) {
    struct ticket *ticket = ctx;
    struct scheduler *scheduler = ticket->scheduler;
    pthread_mutex_lock(&scheduler->lock);
    ticket->posted = false;
    bool released = ticket->released;
    if (released) end(ticket);
    pthread_mutex_unlock(&scheduler->lock);
    if (released) return;
    ticket->waited_ms = loop_now_ms(ticket->loop) - ticket->since_ms;
    if (ticket_starved(ticket))
        log_often(LOG_WARNING, "a call of app '%s' waited %llu ms for a model: starved",
                  ticket->app->name, (unsigned long long)ticket->waited_ms);
    ticket->on_granted(ticket->ctx);
}

enum ticket_state scheduler_take(struct scheduler *scheduler, struct str app, struct loop *loop,
                                 ticket_granted_fn *on_granted, void *ctx,
                                 struct ticket **ret) {
    enum ticket_state state = TICKET_GRANTED;
    struct ticket *ticket = MEM_NEW(struct ticket);
    *ticket = (struct ticket){.scheduler = scheduler,
                              .loop = loop,
                              .on_granted = on_granted,
                              .ctx = ctx,
                              .since_ms = loop_now_ms(loop)};
    list_init(&ticket->link);
    pthread_mutex_lock(&scheduler->lock);
    ticket->app = join_app(scheduler, app.len ? app : DEFAULT_APP);
    if (has_room(scheduler, ticket->app)) {
        grant(ticket);
    } else if (scheduler->waiting_count < scheduler->limits.queue_max) {
        list_append(&scheduler->waiting, &ticket->link);
        scheduler->waiting_count++;
        state = TICKET_WAITS;
    } else {
        leave_app(scheduler, ticket->app);
        free(ticket);
        ticket = NULL;
        state = TICKET_REFUSED;
    }
    pthread_mutex_unlock(&scheduler->lock);
    *ret = ticket;
    return state;
}

void scheduler_release(struct ticket *ticket) {
    if (!ticket) return;
    struct scheduler *scheduler = ticket->scheduler;
    pthread_mutex_lock(&scheduler->lock);
    if (ticket->posted) {
        ticket->released = true; /* on_mail() ends it */
    } else {
        end(ticket);
    }
    pthread_mutex_unlock(&scheduler->lock);
}

uint64_t ticket_waited_ms(const struct ticket *ticket) {
    return ticket->waited_ms;
}

bool ticket_starved(const struct ticket *ticket) {
    return ticket->waited_ms >= SCHEDULER_STARVED_MS;
}

struct occupancy scheduler_occupancy(struct scheduler *scheduler, struct str app) {
    pthread_mutex_lock(&scheduler->lock);
    const struct app *found = map_find(scheduler->apps, app.len ? app : DEFAULT_APP);
    struct occupancy now = {.global_used = scheduler->used,
                            .global_cap = scheduler->limits.global,
                            .app_used = found ? found->used : 0,
                            .app_cap = scheduler->limits.per_app,
                            .waiting = scheduler->waiting_count};
    pthread_mutex_unlock(&scheduler->lock);
    return now;
}
