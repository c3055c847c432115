#include "contract/nimi/upload/pruner.h"

#include "base/clock.h"
#include "base/log.h"

#define TROUBLE_MS 60000 /* pause after a failure of the store */
#define SOON_MS 1000     /* shortest pause, whatever the clock says */

static void pruner_ask(struct pruner *pruner);

static uint64_t wait_ms(const struct pruner *pruner, int64_t next_ms) {
    int64_t in_ms = next_ms - pruner->unix_ms();
    if (in_ms < SOON_MS) return SOON_MS;
    return (uint64_t)(in_ms < UPLOAD_KEPT_MS ? in_ms : UPLOAD_KEPT_MS);
}

static void on_pruned(bool more, int64_t next_ms, const struct err *failed, void *ctx) {
    struct pruner *pruner = ctx;
    pruner->ask = NULL;
    if (failed) {
        log_often(LOG_WARNING, "uploads whose time is over are still there: %s", failed->text);
        timer_start(&pruner->due, TROUBLE_MS);
    } else if (more || pruner->again) {
        pruner_ask(pruner);
    } else if (next_ms) {
        timer_start(&pruner->due, wait_ms(pruner, next_ms));
    }
}

static void pruner_ask(struct pruner *pruner) {
    pruner->again = false;
    timer_stop(&pruner->due);
    pruner->ask =
        upload_prune_start(pruner->store, pruner->loop, pruner->unix_ms(), on_pruned, pruner);
}

static void on_due(void *ctx) {
    pruner_ask(ctx);
}

void pruner_init(struct pruner *pruner, struct loop *loop) {
    *pruner = (struct pruner){.loop = loop, .unix_ms = clock_unix_ms};
    timer_init(&pruner->due, loop, on_due, pruner);
}

void pruner_start(struct pruner *pruner, struct store *store) {
    if (pruner->store || !store) return;
    pruner->store = store;
    pruner_ask(pruner);
}

void pruner_stop(struct pruner *pruner) {
    timer_stop(&pruner->due);
    upload_forget(pruner->ask);
    pruner->ask = NULL;
    pruner->store = NULL;
}

void pruner_wake(struct pruner *pruner) {
    if (pruner->ask) {
        pruner->again = true;
    } else if (pruner->store) {
        pruner_ask(pruner);
    }
}
