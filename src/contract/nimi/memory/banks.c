#include "base/mem.h"
#include "contract/nimi/memory/memory.h"
#include "contract/nimi/memory/work.h"
#include "proto/nimi.pb.h"

#include <stdio.h>

#define EVENT_MAX_BYTES (4 * KIB)
#define LIST_REPLY_BYTES (3 * MIB)

static const struct nimi_ack done = {.ok = true, .reason_code = NIMI_ACTION_EXECUTED};

/* --- get ---------------------------------------------------------------------------------- */

static void banks_on_got(const struct bank_answer *answer, const struct err *failed,
                         void *ctx) {
    struct memory_work *work = ctx;
    struct nimi_call *call = kept_call_answered(&work->kept, failed, false);
    if (call) {
        struct arena *arena = arena_new(MIB);
        struct nimi_memory_bank bank;
        memory_bank_of(&answer->items[0], arena, &bank);
        nimi_reply(call, &nimi_get_bank_response_table,
                   &(struct nimi_get_bank_response){.bank = &bank});
        arena_free(arena);
    }
    memory_work_end(work);
}

void memory_get_bank(struct nimi_call *call, const void *request) {
    const struct nimi_get_bank_request *from = request;
    struct memory_work *work = memory_work_new(call, from->context);
    struct fault fault;
    if (!work) return;
    if (!locator_read(from->locator, &work->locator, &fault)) {
        memory_work_refuse(work, &fault);
        return;
    }
    const struct bank_where where = memory_where(work);
    bank_get_start(work->kept.store, call->loop, &where, banks_on_got, work);
}

/* --- list --------------------------------------------------------------------------------- */

static bool is_on_page(const struct memory_work *work, const struct bank_item *item,
                       const struct nimi_memory_bank *bank) {
    struct locator locator;
    struct fault fault;
    return (!work->page.cursor.len || str_compare(item->name, work->page.cursor) > 0) &&
           locator_read(bank->locator, &locator, &fault) &&
           locator_filter_wants(locator.key, work->filter);
}

/* An owner's banks are few, so all of them are read, and the page is cut here. */
static void reply_list(const struct memory_work *work, struct nimi_call *call,
                       const struct bank_answer *answer, struct arena *arena) {
    struct nimi_memory_bank banks[BANK_OWNER_BANKS_MAX];
    char token[PAGE_TOKEN_MAX_BYTES];
    struct buf next = {.at = token, .room = sizeof(token), .max_bytes = sizeof(token)};
    size_t count = 0, bytes = 0;
    for (size_t i = 0; i < answer->count; i++) {
        memory_bank_of(&answer->items[i], arena, &banks[count]);
        if (!is_on_page(work, &answer->items[i], &banks[count])) continue;
        bytes += answer->items[i].body.len;
        if (count == work->page.size || (count && bytes > LIST_REPLY_BYTES)) {
            page_next(&work->page, banks[count - 1].bank_id, &next);
            break;
        }
        count++;
    }
    nimi_reply(call, &nimi_list_banks_response_table,
               &(struct nimi_list_banks_response){
                   .banks = banks, .banks_count = count, .next_page_token = buf_str(&next)});
}

static void on_banks_listed(const struct bank_answer *answer, const struct err *failed,
                            void *ctx) {
    struct memory_work *work = ctx;
    struct nimi_call *call = kept_call_answered(&work->kept, failed, false);
    if (call) {
        struct arena *arena = arena_new(64 * MIB);
        reply_list(work, call, answer, arena);
        arena_free(arena);
    }
    memory_work_end(work);
}

static bool choose_banks(struct memory_work *work, const struct nimi_list_banks_request *from,
                         struct fault *fault) {
    work->filter = locator_filter_new(from->scope_filters, from->scope_filters_count,
                                      from->owner_filters, from->owner_filters_count, fault);
    if (!work->filter || !owner_size("page_size", from->page_size, fault)) return false;
    struct buf owners;
    char scopes[16];
    buf_init(&owners, LOCATOR_FILTERS_MAX * (BANK_LOCATOR_MAX_BYTES + 16));
    for (size_t i = 0; i < work->filter->count; i++) {
        buf_append_u64(&owners, work->filter->keys[i].len);
        buf_append(&owners, work->filter->keys[i]);
    }
    snprintf(scopes, sizeof(scopes), "%x", work->filter->scopes);
    const struct str filter[] = {work->kept.call->row->path, work->kept.log.owner.app,
                                 work->kept.log.owner.subject, str_from(scopes),
                                 buf_str(&owners)};
    bool ok = page_begin(from->page_size, from->page_token, filter, ARRAY_LEN(filter),
                         &work->page, fault);
    buf_done(&owners);
    return ok;
}

void memory_list_banks(struct nimi_call *call, const void *request) {
    const struct nimi_list_banks_request *from = request;
    struct memory_work *work = memory_work_new(call, from->context);
    struct fault fault;
    if (!work) return;
    if (!choose_banks(work, from, &fault)) {
        memory_work_refuse(work, &fault);
        return;
    }
    bank_list_start(work->kept.store, call->loop, &work->kept.log.owner, on_banks_listed, work);
}

/* --- delete ------------------------------------------------------------------------------- */

static void on_deleted(const struct bank_answer *answer, const struct err *failed, void *ctx) {
    struct memory_work *work = ctx;
    struct nimi_call *call = kept_call_answered(&work->kept, failed, !failed);
    (void)answer;
    if (call) {
        bank_pruner_wake(&call->instance->bank_pruner);
        nimi_reply(call, &nimi_delete_bank_response_table,
                   &(struct nimi_delete_bank_response){.ack = &done});
    }
    memory_work_end(work);
}

void memory_delete_bank(struct nimi_call *call, const void *request) {
    const struct nimi_delete_bank_request *from = request;
    struct memory_work *work = memory_work_new(call, from->context);
    struct buf event;
    struct fault fault;
    if (!work) return;
    if (!locator_read_public(from->locator, &work->locator, &fault)) {
        memory_work_refuse(work, &fault);
        return;
    }
    const struct bank_where where = memory_where(work);
    buf_init(&event, EVENT_MAX_BYTES);
    memory_event_put(&event, NIMI_MEMORY_EVENT_TYPE_BANK_DELETED, &work->locator,
                     (struct nimi_memory_event){.sequence = 0});
    bank_delete_start(work->kept.store, call->loop, &where,
                      &(struct bank_event){work->locator.key, buf_str(&event)}, on_deleted,
                      work);
    buf_done(&event);
}
