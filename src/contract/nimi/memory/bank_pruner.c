#include "contract/nimi/memory/bank_pruner.h"

#include "base/log.h"

static void bank_pruner_ask(struct bank_pruner *pruner);

/* After a failure the records stay until the next wake or start. */
static void on_pruned(const struct bank_answer *answer, const struct err *failed, void *ctx) {
    struct bank_pruner *pruner = ctx;
    pruner->ask = NULL;
    if (failed) log_warning("records of a deleted memory bank stay: %s", failed->text);
    if (pruner->again || (!failed && answer->more)) bank_pruner_ask(pruner);
}

static void bank_pruner_ask(struct bank_pruner *pruner) {
    pruner->again = pruner->ask != NULL;
    if (!pruner->ask)
        pruner->ask = bank_prune_start(pruner->store, pruner->loop, on_pruned, pruner);
}

void bank_pruner_start(struct bank_pruner *pruner, struct loop *loop, struct store *store) {
    pruner->loop = loop;
    pruner->store = store;
    bank_pruner_wake(pruner);
}

void bank_pruner_stop(struct bank_pruner *pruner) {
    bank_leave(pruner->ask);
    *pruner = (struct bank_pruner){.store = NULL};
}

void bank_pruner_wake(struct bank_pruner *pruner) {
    if (pruner->store) bank_pruner_ask(pruner);
}
