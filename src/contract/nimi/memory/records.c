#include "base/clock.h"
#include "base/mem.h"
#include "contract/nimi/memory/memory.h"
#include "contract/nimi/memory/record.h"
#include "contract/nimi/memory/work.h"
#include "contract/nimi/once.h"
#include "proto/nimi.pb.h"

#include <stdlib.h>

#define REPLY_MAX_BYTES (3 * MIB) /* of the records of one request */
#define REASON_MAX_BYTES 1024
#define EVENT_MAX_BYTES (4 * KIB)

static const struct nimi_ack done = {.ok = true, .reason_code = NIMI_ACTION_EXECUTED};

/* --- retain ------------------------------------------------------------------------------- */

/* What is stored of a request, and what is said of it. */
struct retained {
    struct arena *arena;
    struct bank_record records[BANK_RETAIN_MAX];
    struct nimi_memory_record messages[BANK_RETAIN_MAX];
    char ids[BANK_RETAIN_MAX][ULID_LEN + 1];
};

static bool count_is_ok(size_t count, struct fault *fault) {
    return (count > 0 && count <= BANK_RETAIN_MAX) ||
           fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "there are %zu records; a request has 1 to %d", count, BANK_RETAIN_MAX);
}

/* Those of one request are a microsecond apart, so that they keep their order. */
static bool make_records(const struct memory_work *work, const struct nimi_retain_request *from,
                         struct retained *retained, struct fault *fault) {
    int64_t now_us = clock_unix_us();
    size_t bytes = 0;
    if (!count_is_ok(from->records_count, fault)) return false;
    for (size_t i = 0; i < from->records_count; i++) {
        ulid_new(retained->ids[i]);
        if (!record_make(&from->records[i], &work->locator, str_of(retained->ids[i], ULID_LEN),
                         now_us + (int64_t)i, retained->arena, &retained->records[i],
                         &retained->messages[i], fault))
            return false;
        bytes += retained->records[i].body.len;
    }
    return bytes <= REPLY_MAX_BYTES ||
           fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "the records have %zu bytes; a request has %d MiB of them", bytes,
                     (int)(REPLY_MAX_BYTES / MIB));
}

static void on_retained(const struct bank_answer *answer, const struct err *failed, void *ctx) {
    struct memory_work *work = ctx;
    struct nimi_call *call = kept_call_answered(&work->kept, failed, !failed);
    (void)answer;
    if (!failed) embedder_wake(&work->instance->embedder);
    if (call) once_made_with_effect(call, buf_str(&work->reply));
    memory_work_end(work);
}

/* The reply is made now, while the request is there, and sent when the records are on disk. */
static void start_retain(struct memory_work *work, const struct nimi_retain_request *from,
                         struct retained *retained) {
    const struct bank_where where = memory_where(work);
    pb_encode(&nimi_retain_response_table,
              &(struct nimi_retain_response){.records = retained->messages,
                                             .records_count = from->records_count},
              &work->reply);
    struct kept_reply made;
    bank_retain_start(work->kept.store, work->kept.call->loop, &where, retained->records,
                      from->records_count, work->locator.key,
                      once_with_effect(work->kept.call, buf_str(&work->reply), &made),
                      on_retained, work);
}

void memory_retain(struct nimi_call *call, const void *request) {
    const struct nimi_retain_request *from = request;
    struct memory_work *work = memory_work_new(call, from->context);
    struct fault fault;
    if (!work) return;
    struct retained *retained = MEM_NEW(struct retained);
    retained->arena = arena_new(BANK_RETAIN_MAX * (3 * BANK_RECORD_MAX_BYTES));
    if (!locator_read(from->bank, &work->locator, &fault) ||
        !make_records(work, from, retained, &fault)) {
        memory_work_refuse(work, &fault);
    } else {
        start_retain(work, from, retained);
    }
    arena_free(retained->arena);
    free(retained);
}

/* --- delete ------------------------------------------------------------------------------- */

static bool ids_are_ok(const struct nimi_delete_memory_request *from, struct fault *fault) {
    if (from->memory_ids_count == 0 || from->memory_ids_count > BANK_FORGET_MAX)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "there are %zu memory_ids; a request has 1 to %d",
                         from->memory_ids_count, BANK_FORGET_MAX);
    for (size_t i = 0; i < from->memory_ids_count; i++) {
        if (from->memory_ids[i].len == 0 || from->memory_ids[i].len > BANK_NAME_MAX_BYTES)
            return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                             "a memory_id has %zu bytes; send ids as Retain gave them",
                             from->memory_ids[i].len);
    }
    return from->reason.len <= REASON_MAX_BYTES ||
           fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "reason has %zu bytes, at most %d are allowed", from->reason.len,
                     REASON_MAX_BYTES);
}

static void on_forgotten(const struct bank_answer *answer, const struct err *failed,
                         void *ctx) {
    struct memory_work *work = ctx;
    struct nimi_call *call = kept_call_answered(&work->kept, failed, !failed && answer->count);
    if (call) {
        struct str ids[BANK_FORGET_MAX];
        for (size_t i = 0; i < answer->count; i++) ids[i] = answer->items[i].name;
        nimi_reply(
            call, &nimi_delete_memory_response_table,
            &(struct nimi_delete_memory_response){.ack = &done,
                                                  .deleted_memory_ids = ids,
                                                  .deleted_memory_ids_count = answer->count});
    }
    memory_work_end(work);
}

void memory_delete(struct nimi_call *call, const void *request) {
    const struct nimi_delete_memory_request *from = request;
    struct memory_work *work = memory_work_new(call, from->context);
    struct buf event;
    struct fault fault;
    if (!work) return;
    if (!locator_read(from->bank, &work->locator, &fault) || !ids_are_ok(from, &fault)) {
        memory_work_refuse(work, &fault);
        return;
    }
    const struct bank_where where = memory_where(work);
    const struct nimi_memory_deleted_detail detail = {.reason = from->reason};
    buf_init(&event, EVENT_MAX_BYTES);
    memory_event_put(
        &event, NIMI_MEMORY_EVENT_TYPE_RECORD_DELETED, &work->locator,
        (struct nimi_memory_event){.which_detail = NIMI_MEMORY_EVENT_RECORD_DELETED,
                                   .record_deleted = &detail});
    bank_forget_start(
        work->kept.store, call->loop, &where, from->memory_ids, from->memory_ids_count,
        &(struct bank_event){work->locator.key, buf_str(&event)}, on_forgotten, work);
    buf_done(&event);
}
