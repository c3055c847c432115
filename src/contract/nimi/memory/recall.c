#include "contract/nimi/memory/memory.h"
#include "contract/nimi/memory/record.h"
#include "contract/nimi/memory/work.h"
#include "proto/nimi.pb.h"

#include <inttypes.h>
#include <stdio.h>

#define LIMIT_COMMON 20           /* hits, when the request names no limit */
#define REPLY_MAX_BYTES (3 * MIB) /* of records in one reply */
#define ARENA_BYTES (64 * MIB)    /* to decode them */

/* --- filters ------------------------------------------------------------------------------ */

static bool set_of(const char *name, const int32_t *values, size_t count, int32_t max,
                   uint32_t *ret, struct fault *fault) {
    *ret = count ? 0 : BANK_ANY;
    for (size_t i = 0; i < count; i++) {
        if (values[i] < 0 || values[i] > max)
            return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID, "%s: there is no %d", name,
                             values[i]);
        *ret |= 1u << values[i];
    }
    return true;
}

static bool times_of(const struct google_timestamp *from, const struct google_timestamp *to,
                     struct bank_query *ret, struct fault *fault) {
    ret->from_us = INT64_MIN;
    ret->to_us = INT64_MAX;
    return (!from || record_moment("start_time", from, &ret->from_us, fault)) &&
           (!to || record_moment("end_time", to, &ret->to_us, fault));
}

/* --- what was found ----------------------------------------------------------------------- */

/* Nothing but our own code writes these bytes. */
static void record_of(const struct bank_item *item, struct arena *arena,
                      struct nimi_memory_record *ret) {
    struct err e;
    if (!pb_decode_view(&nimi_memory_record_table, item->body, arena, ret, &e))
        *ret = (struct nimi_memory_record){.memory_id = item->name};
}

/* --- history ------------------------------------------------------------------------------ */

/* "AT NAME" of the last record of a page. */
static bool read_place(const struct page *page, struct bank_query *ret, struct fault *fault) {
    struct str at = str_split(page->cursor, ' ', &ret->after_name);
    if (page->cursor.len == 0) return true;
    if (str_to_i64(at, &ret->after_us) && ret->after_name.len > 0 &&
        ret->after_name.len <= BANK_NAME_MAX_BYTES)
        return true;
    return fault_set(fault, NIMI_PAGE_TOKEN_INVALID,
                     "this page_token is not of this list; begin again without one");
}

static void put_place(const struct page *page, const struct bank_item *last, struct buf *out) {
    char text[32 + BANK_NAME_MAX_BYTES];
    snprintf(text, sizeof(text), "%" PRId64 " " STR_FMT, last->at_us, STR_ARG(last->name));
    page_next(page, str_from(text), out);
}

static void on_history(const struct bank_answer *answer, const struct err *failed, void *ctx) {
    struct memory_work *work = ctx;
    struct nimi_call *call = kept_call_answered(&work->kept, failed, false);
    if (call) {
        struct nimi_memory_record records[BANK_ANSWER_MAX];
        struct arena *arena = arena_new(ARENA_BYTES);
        char token[PAGE_TOKEN_MAX_BYTES];
        struct buf next = {.at = token, .room = sizeof(token), .max_bytes = sizeof(token)};
        for (size_t i = 0; i < answer->count; i++)
            record_of(&answer->items[i], arena, &records[i]);
        if (answer->more) put_place(&work->page, &answer->items[answer->count - 1], &next);
        nimi_reply(call, &nimi_history_response_table,
                   &(struct nimi_history_response){.records = records,
                                                   .records_count = answer->count,
                                                   .next_page_token = buf_str(&next)});
        arena_free(arena);
    }
    memory_work_end(work);
}

static bool choose_history(struct memory_work *work, const struct nimi_memory_history_query *by,
                           struct bank_query *ret, struct fault *fault) {
    char numbers[96];
    if (!owner_size("page_size", by->page_size, fault) ||
        !set_of("kinds", by->kinds, by->kinds_count, NIMI_MEMORY_RECORD_KIND_OBSERVATIONAL,
                &ret->kinds, fault) ||
        !times_of(by->start_time, by->end_time, ret, fault))
        return false;
    ret->classes = BANK_ANY;
    ret->max_bytes = REPLY_MAX_BYTES;
    snprintf(numbers, sizeof(numbers), "%x %" PRId64 " %" PRId64, ret->kinds, ret->from_us,
             ret->to_us);
    const struct str filter[] = {work->kept.call->row->path, work->kept.log.owner.app,
                                 work->kept.log.owner.subject, work->locator.key,
                                 str_from(numbers)};
    if (!page_begin(by->page_size, by->page_token, filter, ARRAY_LEN(filter), &work->page,
                    fault))
        return false;
    ret->limit = work->page.size;
    return read_place(&work->page, ret, fault);
}

void memory_history(struct nimi_call *call, const void *request, struct arena *arena) {
    static const struct nimi_memory_history_query everything = {.page_size = 0};
    const struct nimi_history_request *from = request;
    struct memory_work *work = memory_work_new(call, from->context);
    struct bank_query query = {.words = STR_EMPTY};
    struct fault fault;
    (void)arena;
    if (!work) return;
    if (!locator_read(from->bank, &work->locator, &fault) ||
        !choose_history(work, from->query ? from->query : &everything, &query, &fault)) {
        memory_work_refuse(work, &fault);
        return;
    }
    const struct bank_where where = memory_where(work);
    bank_history_start(work->kept.store, call->loop, &where, &query, on_history, work);
}

/* --- recall ------------------------------------------------------------------------------- */

static void on_recalled(const struct bank_answer *answer, const struct err *failed, void *ctx) {
    struct memory_work *work = ctx;
    struct nimi_call *call = kept_call_answered(&work->kept, failed, false);
    if (call) {
        struct nimi_memory_record records[BANK_ANSWER_MAX];
        struct nimi_memory_recall_hit hits[BANK_ANSWER_MAX];
        struct arena *arena = arena_new(ARENA_BYTES);
        for (size_t i = 0; i < answer->count; i++) {
            record_of(&answer->items[i], arena, &records[i]);
            hits[i] = (struct nimi_memory_recall_hit){.record = &records[i],
                                                      .relevance_score = answer->items[i].score,
                                                      .match_reason = STR("bm25")};
        }
        nimi_reply(call, &nimi_recall_response_table,
                   &(struct nimi_recall_response){.hits = hits, .hits_count = answer->count});
        arena_free(arena);
    }
    memory_work_end(work);
}

static bool choose_recall(const struct nimi_memory_recall_query *by, struct bank_query *ret,
                          struct fault *fault) {
    if (!by || str_trim(by->query).len == 0)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "query.query is empty; say what to look for, or ask for History");
    if (by->query.len > BANK_QUERY_MAX_BYTES)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "query.query has %zu bytes, at most %d are allowed", by->query.len,
                         (int)BANK_QUERY_MAX_BYTES);
    ret->words = by->query;
    ret->limit = by->limit ? (size_t)by->limit : LIMIT_COMMON;
    if (ret->limit > BANK_ANSWER_MAX) ret->limit = BANK_ANSWER_MAX;
    ret->max_bytes = REPLY_MAX_BYTES;
    return owner_size("query.limit", by->limit, fault) &&
           set_of("kinds", by->kinds, by->kinds_count, NIMI_MEMORY_RECORD_KIND_OBSERVATIONAL,
                  &ret->kinds, fault) &&
           set_of("canonical_classes", by->canonical_classes, by->canonical_classes_count,
                  NIMI_MEMORY_CANONICAL_CLASS_DYADIC, &ret->classes, fault) &&
           times_of(by->start_time, by->end_time, ret, fault);
}

void memory_recall(struct nimi_call *call, const void *request, struct arena *arena) {
    const struct nimi_recall_request *from = request;
    struct memory_work *work = memory_work_new(call, from->context);
    struct bank_query query = {.words = STR_EMPTY};
    struct fault fault;
    (void)arena;
    if (!work) return;
    if (!locator_read(from->bank, &work->locator, &fault) ||
        !choose_recall(from->query, &query, &fault)) {
        memory_work_refuse(work, &fault);
        return;
    }
    const struct bank_where where = memory_where(work);
    work->kept.search =
        bank_recall_start(work->kept.store, call->loop, &where, &query, on_recalled, work);
}
