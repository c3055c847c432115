#include "base/log.h"
#include "contract/nimi/memory/embed.h"
#include "contract/nimi/memory/memory.h"
#include "contract/nimi/memory/record.h"
#include "contract/nimi/memory/work.h"
#include "proto/nimi.pb.h"

#include <inttypes.h>
#include <stdio.h>

#define LIMIT_COMMON 20           /* hits, when the request names no limit */
#define REPLY_MAX_BYTES (3 * MIB) /* of records in one reply */
#define ARENA_BYTES (64 * MIB)    /* to decode them */
#define EMBED_MS 5000             /* for the vector of a query */

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
static bool recall_read_place(const struct page *page, struct bank_query *ret,
                              struct fault *fault) {
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
    return recall_read_place(&work->page, ret, fault);
}

void memory_history(struct nimi_call *call, const void *request) {
    static const struct nimi_memory_history_query everything = {.page_size = 0};
    const struct nimi_history_request *from = request;
    struct memory_work *work = memory_work_new(call, from->context);
    struct bank_query query = {.words = STR_EMPTY};
    struct fault fault;
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

static struct str match_reason(const struct memory_work *work, unsigned by) {
    bool far = work->query.by_distance;
    if (by == BANK_BY_WORDS) return STR("bm25");
    if (by == BANK_BY_VECTOR) return far ? STR("euclidean") : STR("cosine");
    return far ? STR("bm25+euclidean") : STR("bm25+cosine");
}

static void reply_hits(const struct memory_work *work, struct nimi_call *call,
                       const struct bank_answer *answer) {
    struct nimi_memory_record records[BANK_ANSWER_MAX];
    struct nimi_memory_recall_hit hits[BANK_ANSWER_MAX];
    struct arena *arena = arena_new(ARENA_BYTES);
    for (size_t i = 0; i < answer->count; i++) {
        record_of(&answer->items[i], arena, &records[i]);
        hits[i] = (struct nimi_memory_recall_hit){.record = &records[i],
                                                  .relevance_score = answer->items[i].score,
                                                  .match_reason =
                                                      match_reason(work, answer->items[i].by)};
    }
    nimi_reply(call, &nimi_recall_response_table,
               &(struct nimi_recall_response){.hits = hits, .hits_count = answer->count});
    arena_free(arena);
}

static void embed_query(struct memory_work *work, const struct bank_answer *answer);

static void on_recalled(const struct bank_answer *answer, const struct err *failed, void *ctx) {
    struct memory_work *work = ctx;
    struct nimi_call *call = kept_call_answered(&work->kept, failed, false);
    if (call && answer->wants_vector) {
        embed_query(work, answer);
        return;
    }
    if (call) reply_hits(work, call, answer);
    memory_work_end(work);
}

static void search(struct memory_work *work) {
    const struct bank_where where = memory_where(work);
    work->kept.search = bank_recall_start(work->kept.store, work->kept.call->loop, &where,
                                          &work->query, on_recalled, work);
}

/* --- the vector of a query ---------------------------------------------------------------- */

/* A recall that no model helps is better than none; its hits say that they match by words. */
static void search_by_words(struct memory_work *work, const char *why) {
    log_often(LOG_WARNING, "a memory bank is searched by words alone: %s", why);
    work->query.by_words = true;
    search(work);
}

static void on_query_embedded(enum embed_end how, const float *values, const struct err *failed,
                              void *ctx) {
    struct memory_work *work = ctx;
    work->embed = NULL;
    work->kept.left = NULL;
    if (how != EMBED_OK) {
        search_by_words(work, failed->text);
        return;
    }
    work->query.vector = values;
    search(work);
    work->query.vector = NULL; /* only lent */
}

static void recall_on_left(struct kept_call *kept) {
    memory_work_end(CONTAINER_OF(kept, struct memory_work, kept));
}

static void embed_query(struct memory_work *work, const struct bank_answer *answer) {
    struct arena *arena = arena_new(MIB);
    struct nimi_memory_bank bank;
    struct fault fault = {.why.text = "the bank's profile is damaged"};
    memory_bank_of(&answer->items[0], arena, &bank);
    const struct nimi_memory_embedding_profile *profile = bank.embedding_profile;
    if (profile) {
        work->query.dimension = (size_t)profile->dimension;
        work->query.space = answer->space;
        work->query.by_distance =
            profile->distance_metric == NIMI_MEMORY_DISTANCE_METRIC_EUCLIDEAN;
        work->embed = embed_start(&(struct embed_options){.instance = work->instance,
                                                          .profile = profile,
                                                          .owner = work->kept.log.owner,
                                                          .texts = &work->query.words,
                                                          .count = 1,
                                                          .total_ms = EMBED_MS,
                                                          .done = on_query_embedded,
                                                          .ctx = work},
                                  &fault);
    }
    arena_free(arena);
    if (work->embed) {
        work->kept.left = recall_on_left;
    } else {
        search_by_words(work, fault.why.text);
    }
}

/* --- its request -------------------------------------------------------------------------- */

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

void memory_recall(struct nimi_call *call, const void *request) {
    const struct nimi_recall_request *from = request;
    struct memory_work *work = memory_work_new(call, from->context);
    struct fault fault;
    if (!work) return;
    if (!locator_read(from->bank, &work->locator, &fault) ||
        !choose_recall(from->query, &work->query, &fault)) {
        memory_work_refuse(work, &fault);
        return;
    }
    buf_append(&work->words, work->query.words); /* as long as is allowed, at most */
    work->query.words = buf_str(&work->words);
    search(work);
}
