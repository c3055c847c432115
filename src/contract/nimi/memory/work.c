#include "contract/nimi/memory/work.h"

#include "base/clock.h"
#include "base/mem.h"
#include "contract/nimi/moment.h"

#include <assert.h>
#include <stdlib.h>

/* The call is over, or its caller has left; the store answers the work all the same. */
static void on_call_over(void *ctx) {
    ((struct memory_work *)ctx)->call = NULL;
}

static void on_call_cancelled(enum close_cause why, void *ctx) {
    (void)why;
    on_call_over(ctx);
}

static const struct nimi_work hold = {.cancelled = on_call_cancelled, .closed = on_call_over};
static const struct nimi_work no_work = {.closed = NULL};

static void keep_owner(struct memory_work *work, const struct store_owner *owner) {
    work->owner = *owner;
    struct str *const texts[] = {&work->owner.app, &work->owner.subject};
    buf_keep_texts(&work->texts, texts, ARRAY_LEN(texts));
}

struct memory_work *memory_work_new(struct nimi_call *call,
                                    const struct nimi_memory_request_context *context) {
    struct store_owner owner;
    struct fault fault;
    struct str app = context ? context->app_id : STR_EMPTY;
    struct str subject = context ? context->subject_user_id : STR_EMPTY;
    if (!owner_of(call, app, subject, &owner, &fault)) {
        nimi_refuse(call, &fault);
        return NULL;
    }
    struct store *store = owner_store(call);
    if (!store) return NULL;
    struct memory_work *work = MEM_NEW(struct memory_work);
    work->call = call;
    work->store = store;
    work->topics = log_topics_ref(nimi_runtime_logs(call->instance->runtime));
    buf_init(&work->reply, 4 * MIB);
    keep_owner(work, &owner);
    nimi_work(call, &hold, work);
    return work;
}

void memory_work_end(struct memory_work *work) {
    if (work->call) nimi_work(work->call, &no_work, NULL);
    log_topics_unref(work->topics);
    buf_done(&work->texts);
    buf_done(&work->reply);
    free(work->filter);
    free(work);
}

void memory_work_refuse(struct memory_work *work, const struct fault *fault) {
    struct nimi_call *call = work->call;
    memory_work_end(work);
    nimi_refuse(call, fault);
}

struct bank_where memory_where(const struct memory_work *work) {
    return (struct bank_where){work->owner, work->locator.key};
}

struct nimi_call *memory_work_answered(struct memory_work *work, const struct err *failed,
                                       bool wrote) {
    const struct event_log_key log = {.kind = EVENT_LOG_MEMORY, .owner = work->owner};
    /* An outcome that is unknown may be a change. */
    if (wrote || (failed && failed->code == ERR_OUTCOME_UNKNOWN))
        log_topics_tell(work->topics, &log);
    if (!work->call || work->call->over) return NULL;
    if (!failed) return work->call;
    owner_refuse(work->call, failed);
    return NULL;
}

void memory_event_put(struct buf *out, int32_t type, const struct locator *locator,
                      struct nimi_memory_event *event) {
    const struct google_timestamp now = nimi_moment(clock_unix_ms());
    event->event_type = type;
    event->bank = &locator->message;
    event->timestamp = &now;
    bool fits = pb_encode(&nimi_memory_event_table, event, out);
    assert(fits);
    (void)fits;
}
