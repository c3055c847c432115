#include "session/holding.h"

#include "base/mem.h"
#include "store/changes.h"

#include <pthread.h>
#include <stdlib.h>

#define AGAIN_MS 500

struct holdings {
    pthread_mutex_t lock;
    struct list list;
};

struct holding {
    struct holding_options options;
    struct list link;
    struct lease_request request;
    struct changes_watcher *watcher;
    struct timer again;
    uint64_t until_ms;
    bool asking, leaving;
    bool freed; /* something was given back while the store was asked */
};

struct holdings *holdings_new(void) {
    struct holdings *holdings = MEM_NEW(struct holdings);
    pthread_mutex_init(&holdings->lock, NULL);
    list_init(&holdings->list);
    return holdings;
}

void holdings_free(struct holdings *holdings) {
    if (!holdings) return;
    pthread_mutex_destroy(&holdings->lock);
    free(holdings);
}

static void holding_on_asked(struct lease_request *request, const struct err *failed,
                             void *ctx);

static void holding_ask(void *ctx) {
    struct holding *holding = ctx;
    if (holding->asking) {
        holding->freed = true;
        return;
    }
    timer_stop(&holding->again);
    holding->asking = true;
    holding->freed = false;
    lease_ask(holding->options.store, holding->options.loop, &holding->request);
}

void holding_start(const struct holding_options *options) {
    struct holding *holding = MEM_NEW(struct holding);
    holding->options = *options;
    holding->request = (struct lease_request){.key = options->key,
                                              .recovers = options->recovers,
                                              .on_done = holding_on_asked,
                                              .ctx = holding};
    holding->until_ms = loop_now_ms(options->loop) + options->wait_ms;
    timer_init(&holding->again, options->loop, holding_ask, holding);
    pthread_mutex_lock(&options->all->lock);
    list_append(&options->all->list, &holding->link);
    pthread_mutex_unlock(&options->all->lock);
    holding_ask(holding);
}

static void holding_end(struct holding *holding, const struct err *failed) {
    const struct holding_options options = holding->options;
    struct err why;
    if (failed) why = *failed;
    pthread_mutex_lock(&options.all->lock);
    list_remove(&holding->link);
    pthread_mutex_unlock(&options.all->lock);
    changes_leave(holding->watcher);
    timer_stop(&holding->again);
    free(holding);
    options.on_end(failed ? &why : NULL, options.ctx);
}

static void holding_stop(struct holding *holding) {
    struct err why;
    err_set(&why, ERR_UNAVAILABLE, "this replica is stopping; ask another one");
    holding_end(holding, &why);
}

static struct holding *holding_of(struct holdings *holdings, const struct loop *loop) {
    struct holding *found = NULL;
    pthread_mutex_lock(&holdings->lock);
    LIST_EACH(&holdings->list, link) {
        struct holding *holding = CONTAINER_OF(link, struct holding, link);
        if (holding->options.loop != loop || holding->leaving) continue;
        found = holding;
        break;
    }
    pthread_mutex_unlock(&holdings->lock);
    return found;
}

void holdings_leave(struct holdings *holdings, const struct loop *loop) {
    struct holding *holding;
    while ((holding = holding_of(holdings, loop))) {
        holding->leaving = true;
        if (!holding->asking) holding_stop(holding);
    }
}

static void holding_wait(struct holding *holding) {
    const struct holding_options *options = &holding->options;
    if (!holding->watcher) {
        holding->watcher =
            changes_watch(store_changes(options->store), lease_change(&options->key),
                          options->loop, holding_ask, holding);
        holding->freed = true; /* perhaps before anyone listened */
    }
    if (holding->freed)
        holding_ask(holding);
    else
        timer_start(&holding->again, AGAIN_MS);
}

static void holding_on_asked(struct lease_request *request, const struct err *failed,
                             void *ctx) {
    struct holding *holding = ctx;
    struct err busy;
    holding->asking = false;
    if (holding->leaving) {
        holding_stop(holding);
        return;
    }
    if (failed || request->held) {
        holding_end(holding, failed);
        return;
    }
    err_set(&busy, ERR_UNAVAILABLE,
            "replica '%s' has this session now; try again in a moment, or there",
            request->holder);
    bool late = loop_now_ms(holding->options.loop) >= holding->until_ms;
    if (late || !holding->options.waits(&busy, holding->options.ctx))
        holding_end(holding, &busy);
    else
        holding_wait(holding);
}
