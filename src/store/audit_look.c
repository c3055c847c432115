#include "store/audit_look.h"

#include "base/mem.h"
#include "store/task.h"

#include <stdio.h>
#include <stdlib.h>

struct audit_look_ask {
    struct store_task task;
    struct audit_looked looked;
    audit_looked_fn *done; /* NULL: cancelled */
    void *ctx;
};

static void audit_look_done(const struct err *failed, void *ctx) {
    struct audit_look_ask *ask = ctx;
    if (ask->done) ask->done(&ask->looked, failed, ask->ctx);
    free(ask);
}

void audit_look_forget(struct audit_look_ask *ask) {
    if (ask) ask->done = NULL;
}

static void audit_look_fault(uint64_t seq, const char *text, void *ctx) {
    struct audit_looked *looked = ctx;
    if (looked->fault_count == AUDIT_LOOK_FAULTS) return;
    struct audit_look_fault *fault = &looked->faults[looked->fault_count++];
    fault->seq = seq;
    snprintf(fault->text, sizeof(fault->text), "%s", text);
}

/* The lengths are by the blocks' own count: the chain may lie, but then it is short enough. */
static bool audit_look_run(struct database *db, void *ctx, struct err *e) {
    struct audit_look_ask *ask = ctx;
    int64_t bytes;
    ask->looked = (struct audit_looked){.looked = false};
    if (!database_number(db,
                         "SELECT COALESCE((SELECT upto FROM audit ORDER BY first DESC LIMIT 1)"
                         " - (SELECT upto FROM audit ORDER BY first LIMIT 1), 0)",
                         &bytes, e))
        return false;
    if (bytes > (int64_t)AUDIT_LOOK_MAX_BYTES) return true;
    ask->looked.looked = true;
    return audit_verify(db, NULL, audit_look_fault, &ask->looked, &ask->looked.verdict, e);
}

struct audit_look_ask *audit_look_start(struct store *store, struct loop *loop,
                                        audit_looked_fn *done, void *ctx) {
    struct audit_look_ask *ask = MEM_NEW(struct audit_look_ask);
    ask->done = done;
    ask->ctx = ctx;
    ask->task = (struct store_task){
        .fn = audit_look_run, .reads_only = true, .on_done = audit_look_done};
    store_run(store, loop, &ask->task, ask);
    return ask;
}
