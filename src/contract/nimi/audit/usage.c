/* ListUsageStats: what calls used, summed from their records. */
#include "contract/nimi/audit/audit.h"
#include "contract/nimi/audit/view.h"
#include "contract/nimi/page.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

#define SUMS_MAX 10000
#define SUMS_MAX_BYTES (16 * MIB)
#define KEY_MAX_BYTES (8 * AUDIT_TEXT_MAX_BYTES)

/* One bucket of one app, subject, caller, capability and model. */
struct usage_bucket {
    struct nimi_usage_stat_record record;
    struct google_timestamp start;
    struct str key; /* the order within a bucket */
};

struct summing {
    struct nimi_call *call;
    struct store *store;
    struct audit_ask *ask;
    struct audit_query query;
    struct page page;
    size_t first; /* of this page */
    int32_t window;
    struct arena *arena;
    struct map *known;
    struct usage_bucket **sums; /* room for SUMS_MAX */
    size_t count;
};

static const int64_t seconds[] = {
    [NIMI_USAGE_WINDOW_MINUTE] = 60,
    [NIMI_USAGE_WINDOW_HOUR] = 3600,
    [NIMI_USAGE_WINDOW_DAY] = 86400,
};

/* --- summing ------------------------------------------------------------------------------ */

static const enum audit_text parts[] = {AUDIT_WORKSPACE, AUDIT_USER,       AUDIT_CALLER_KIND,
                                        AUDIT_CALLER,    AUDIT_CAPABILITY, AUDIT_MODEL};

static struct str usage_key_of(const struct audit_record *record, int64_t start,
                               struct buf *out) {
    buf_append(out, str_of(&start, sizeof(start)));
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        struct str part = record->texts[parts[i]];
        buf_append(out, part);
        buf_append_byte(out, '\0');
    }
    return buf_str(out);
}

static struct str sum_keep(struct summing *summing, struct str text) {
    struct str kept = STR_EMPTY;
    return arena_str(summing->arena, text, &kept) ? kept : STR_EMPTY;
}

static struct usage_bucket *new_sum(struct summing *summing, const struct audit_record *record,
                                    int64_t start, struct str key) {
    struct usage_bucket *sum = ARENA_NEW(summing->arena, struct usage_bucket);
    if (!sum) return NULL;
    sum->start = (struct google_timestamp){.seconds = start};
    sum->key = sum_keep(summing, str_skip(key, sizeof(start)));
    sum->record = (struct nimi_usage_stat_record){
        .app_id = sum_keep(summing, audit_view_text(record, AUDIT_WORKSPACE)),
        .subject_user_id = sum_keep(summing, audit_view_text(record, AUDIT_USER)),
        .caller_kind = audit_view_caller_kind(record->texts[AUDIT_CALLER_KIND]),
        .caller_id = sum_keep(summing, audit_view_text(record, AUDIT_CALLER)),
        .capability = sum_keep(summing, audit_view_text(record, AUDIT_CAPABILITY)),
        .model_id = sum_keep(summing, audit_view_text(record, AUDIT_MODEL)),
        .window = summing->window,
        .bucket_start = &sum->start};
    summing->sums[summing->count++] = sum;
    map_put(summing->known, key, sum);
    return sum;
}

static void add_known(int64_t *sum, const struct audit_record *record,
                      enum audit_number number) {
    int64_t value = audit_get(record, number);
    if (value > 0 && __builtin_add_overflow(*sum, value, sum)) *sum = INT64_MAX;
}

/* False: too many sums. */
static bool sum_record(struct summing *summing, const struct audit_record *record) {
    char room[KEY_MAX_BYTES];
    struct buf text = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    int64_t unix_s = record->at_ms / 1000, start = unix_s - unix_s % seconds[summing->window];
    struct str key = usage_key_of(record, start, &text);
    struct usage_bucket *sum = map_find(summing->known, key);
    if (!sum && summing->count == SUMS_MAX) return false;
    if (!sum) sum = new_sum(summing, record, start, key);
    if (!sum) return false;
    struct nimi_usage_stat_record *stat = &sum->record;
    stat->request_count++;
    if (audit_get(record, AUDIT_OUTCOME) == ERR_NONE) {
        stat->success_count++;
    } else {
        stat->error_count++;
    }
    add_known(&stat->input_tokens, record, AUDIT_INPUT_TOKENS);
    add_known(&stat->output_tokens, record, AUDIT_OUTPUT_TOKENS);
    add_known(&stat->compute_ms, record, AUDIT_COMPUTE_MS);
    add_known(&stat->queue_wait_ms, record, AUDIT_QUEUE_MS);
    return true;
}

/* --- the answer --------------------------------------------------------------------------- */

/* Newest bucket first. */
static int by_place(const void *a, const void *b) {
    const struct usage_bucket *one = *(struct usage_bucket *const *)a,
                              *other = *(struct usage_bucket *const *)b;
    int64_t left = one->start.seconds, right = other->start.seconds;
    return left != right ? (left < right) - (left > right) : str_compare(one->key, other->key);
}

static void reply_sums(struct summing *summing) {
    char room[PAGE_TOKEN_MAX_BYTES];
    struct buf next = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    struct nimi_usage_stat_record records[PAGE_SIZE_MAX];
    struct nimi_list_usage_stats_response said = {.records = records};
    qsort(summing->sums, summing->count, sizeof(struct usage_bucket *), by_place);
    for (size_t i = summing->first; i < summing->count; i++) {
        if (said.records_count == summing->page.size) {
            page_next_index(&summing->page, i, &next);
            break;
        }
        records[said.records_count++] = summing->sums[i]->record;
    }
    said.next_page_token = buf_str(&next);
    nimi_reply(summing->call, &nimi_list_usage_stats_response_table, &said);
}

static void usage_read_on(struct summing *summing);

static void on_summed(const struct audit_page *page, const struct err *failed, void *ctx) {
    struct summing *summing = ctx;
    bool fits = true;
    summing->ask = NULL;
    if (summing->call->over) return;
    if (failed) {
        audit_unread(summing->call, failed);
        return;
    }
    for (size_t i = 0; i < page->count && fits; i++)
        fits = sum_record(summing, &page->records[i]);
    summing->query.cursor = page->scanned.cursor;
    if (!fits) {
        nimi_end(summing->call, ERR_RESOURCE_EXHAUSTED,
                 STR("these are too many sums; ask for a shorter time or a longer window"));
    } else if (page->scanned.end) {
        reply_sums(summing);
    } else {
        usage_read_on(summing);
    }
}

static void usage_read_on(struct summing *summing) {
    summing->query.limit = AUDIT_PAGE_MAX;
    summing->ask = audit_page_start(summing->store, summing->call->loop, &summing->query,
                                    on_summed, summing);
}

static void usage_on_closed(void *ctx) {
    struct summing *summing = ctx;
    audit_forget(summing->ask);
    map_free(summing->known);
    arena_free(summing->arena);
    free(summing->sums);
    free(summing);
}

static const struct nimi_work events = {.closed = usage_on_closed};

/* --- the request -------------------------------------------------------------------------- */

static bool usage_choose(struct nimi_call *call,
                         const struct nimi_list_usage_stats_request *from,
                         struct summing *summing, struct fault *fault) {
    char numbers[96];
    const struct audit_choice choice = {from->app_id, audit_owner(call, from->subject_user_id),
                                        from->from_time, from->to_time};
    struct audit_filter *filter = &summing->query.filter;
    if (!audit_choose(call, &choice, filter, fault)) return false;
    summing->window = from->window ? from->window : NIMI_USAGE_WINDOW_HOUR;
    if (summing->window < 0 || summing->window > NIMI_USAGE_WINDOW_DAY)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID, "there is no window %d",
                         from->window);
    filter->texts[AUDIT_DOMAIN] = STR("runtime.ai");
    filter->texts[AUDIT_CONTRACT] = STR("nimi");
    if (from->caller_id.len) filter->texts[AUDIT_CALLER] = nimi_keep(call, from->caller_id);
    if (from->capability.len)
        filter->texts[AUDIT_CAPABILITY] = nimi_keep(call, from->capability);
    if (from->model_id.len) filter->texts[AUDIT_MODEL] = nimi_keep(call, from->model_id);
    if (from->caller_kind)
        filter->texts[AUDIT_CALLER_KIND] = audit_view_caller_name(from->caller_kind);
    snprintf(numbers, sizeof(numbers), "%d %d %lld %lld", summing->window, from->caller_kind,
             (long long)filter->from_ms, (long long)filter->to_ms);
    const struct str digest[] = {call->row->path,       filter->texts[AUDIT_WORKSPACE],
                                 from->subject_user_id, from->caller_id,
                                 from->capability,      from->model_id,
                                 str_from(numbers)};
    return page_begin(from->page_size, from->page_token, digest, ARRAY_LEN(digest),
                      &summing->page, fault) &&
           page_index(&summing->page, &summing->first, fault);
}

void audit_list_usage(struct nimi_call *call, const void *request) {
    struct summing *summing = MEM_NEW(struct summing);
    struct fault fault;
    summing->call = call;
    summing->query.order = AUDIT_NEWEST_FIRST;
    summing->arena = arena_new(SUMS_MAX_BYTES);
    summing->known = map_new();
    summing->sums = mem_zero(SUMS_MAX, sizeof(struct usage_bucket *));
    nimi_work(call, &events, summing);
    if (!usage_choose(call, request, summing, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    summing->store = audit_store(call);
    if (summing->store) usage_read_on(summing);
}
