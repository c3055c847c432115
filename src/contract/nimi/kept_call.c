#include "contract/nimi/kept_call.h"

#include "base/mem.h"

static const struct nimi_work no_work = {.closed = NULL};

/* The call is over, or its caller has left; the store answers the work all the same. */
static void on_call_over(void *ctx) {
    struct kept_call *kept = ctx;
    kept->call->work = &no_work; /* the work may end now, before the call's last callback */
    kept->call = NULL;
    if (kept->search) bank_give_up(kept->search);
    if (kept->left) kept->left(kept);
}

static void on_call_cancelled(enum close_cause why, void *ctx) {
    (void)why;
    on_call_over(ctx);
}

static const struct nimi_work hold = {.cancelled = on_call_cancelled, .closed = on_call_over};

bool kept_call_begin(struct kept_call *kept, struct nimi_call *call, enum event_log_kind kind,
                     struct str app, struct str subject, struct str name) {
    struct fault fault;
    *kept = (struct kept_call){.call = call, .log = {.kind = kind, .name = name}};
    if (!owner_of(call, app, subject, &kept->log.owner, &fault)) {
        nimi_refuse(call, &fault);
        return false;
    }
    kept->store = owner_store(call);
    if (!kept->store) return false;
    struct str *const texts[] = {&kept->log.owner.app, &kept->log.owner.subject,
                                 &kept->log.name};
    buf_keep_texts(&kept->texts, texts, ARRAY_LEN(texts));
    kept->topics = log_topics_ref(call->instance->runtime->logs);
    nimi_work(call, &hold, kept);
    return true;
}

void kept_call_end(struct kept_call *kept) {
    if (kept->call) nimi_work(kept->call, &no_work, NULL);
    log_topics_unref(kept->topics);
    buf_done(&kept->texts);
}

void kept_call_refuse(struct kept_call *kept, const struct fault *fault) {
    struct nimi_call *call = kept->call;
    kept_call_end(kept);
    nimi_refuse(call, fault);
}

/* An outcome that is unknown may be a change. */
struct nimi_call *kept_call_answered(struct kept_call *kept, const struct err *failed,
                                     bool wrote) {
    kept->search = NULL;
    if (wrote || (failed && failed->code == ERR_OUTCOME_UNKNOWN))
        log_topics_report(kept->topics, &kept->log);
    if (!kept->call || kept->call->over) return NULL;
    if (!failed) return kept->call;
    owner_refuse(kept->call, failed);
    return NULL;
}
