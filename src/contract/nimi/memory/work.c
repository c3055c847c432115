#include "contract/nimi/memory/work.h"

#include "base/clock.h"
#include "base/mem.h"
#include "contract/nimi/memory/embed.h"
#include "contract/nimi/moment.h"
#include "proto/nimi.pb.h"

#include <assert.h>
#include <stdlib.h>

static void work_free(struct memory_work *work) {
    embed_cancel(work->embed);
    memory_creating_free(work->creating);
    buf_done(&work->words);
    buf_done(&work->reply);
    free(work->filter);
    free(work);
}

struct memory_work *memory_work_new(struct nimi_call *call,
                                    const struct nimi_memory_request_context *context) {
    struct memory_work *work = MEM_NEW(struct memory_work);
    struct str app = context ? context->app_id : STR_EMPTY;
    struct str subject = context ? context->subject_user_id : STR_EMPTY;
    if (!kept_call_begin(&work->kept, call, EVENT_LOG_MEMORY, app, subject, STR_EMPTY)) {
        free(work);
        return NULL;
    }
    work->instance = call->instance;
    buf_init(&work->reply, 4 * MIB);
    buf_init(&work->words, BANK_QUERY_MAX_BYTES);
    return work;
}

void memory_work_end(struct memory_work *work) {
    kept_call_end(&work->kept);
    work_free(work);
}

void memory_work_refuse(struct memory_work *work, const struct fault *fault) {
    kept_call_refuse(&work->kept, fault);
    work_free(work);
}

struct bank_where memory_where(const struct memory_work *work) {
    return (struct bank_where){work->kept.log.owner, work->locator.key};
}

void memory_bank_of(const struct bank_item *item, struct arena *arena,
                    struct nimi_memory_bank *ret) {
    struct err e;
    if (!pb_decode_view(&nimi_memory_bank_table, item->body, arena, ret, &e))
        *ret = (struct nimi_memory_bank){.bank_id = item->name};
}

void memory_event_put(struct buf *out, int32_t type, const struct locator *locator,
                      struct nimi_memory_event event) {
    const struct google_timestamp now = nimi_moment(clock_unix_ms());
    event.event_type = type;
    event.bank = &locator->message;
    event.timestamp = &now;
    bool fits = pb_encode(&nimi_memory_event_table, &event, out);
    assert(fits);
    (void)fits;
}
