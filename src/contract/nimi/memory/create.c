#include "base/clock.h"
#include "base/mem.h"
#include "contract/nimi/memory/embed.h"
#include "contract/nimi/memory/memory.h"
#include "contract/nimi/memory/work.h"
#include "contract/nimi/moment.h"
#include "proto/nimi.pb.h"

#include <stdlib.h>

#define NAME_MAX_BYTES 256 /* of a display name */
#define EVENT_MAX_BYTES (4 * KIB)
#define PROBE_MS 10000

/* A bank with an embedding profile is created in steps:
 *
 *     is it there? ─▶ has the model such vectors? ─▶ create it, or give it the profile
 *          └─▶ yes, with this profile, or it keeps its own: the answer
 *
 * The model is asked before anything is written. A caller that leaves until then has asked for
 * nothing. */
struct memory_creating {
    struct arena *arena; /* of `profile`, and of the bank that is there */
    struct nimi_memory_embedding_profile profile;
    char id[ULID_LEN + 1];
    char there[ULID_LEN + 1]; /* the bank that gets the profile; empty: none is there */
    struct buf body, event;
};

static struct memory_creating *creating_new(void) {
    struct memory_creating *creating = MEM_NEW(struct memory_creating);
    creating->arena = arena_new(MIB);
    buf_init(&creating->body, BANK_BODY_MAX_BYTES);
    buf_init(&creating->event, EVENT_MAX_BYTES);
    ulid_new(creating->id);
    return creating;
}

void memory_creating_free(struct memory_creating *creating) {
    if (!creating) return;
    buf_done(&creating->body);
    buf_done(&creating->event);
    arena_free(creating->arena);
    free(creating);
}

/* --- the request -------------------------------------------------------------------------- */

/* An app may not put its banks where another app would look for its own. */
static bool app_is_own(const struct memory_work *work, struct fault *fault) {
    const struct nimi_memory_bank_locator *at = &work->locator.message;
    if (at->which_owner != NIMI_MEMORY_BANK_LOCATOR_APP_PRIVATE ||
        str_equal(at->app_private->app_id, work->kept.log.owner.app))
        return true;
    return fault_set(fault, NIMI_PROTOCOL_DOMAIN_FIELD_CONFLICT,
                     "the locator's app_id is not the app of the request");
}

static bool create_put_body(const struct nimi_memory_bank *bank, struct buf *out,
                            struct fault *fault) {
    buf_clear(out);
    return pb_encode(&nimi_memory_bank_table, bank, out) ||
           fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "the bank's metadata is too long; a bank has %d KiB",
                     (int)(BANK_BODY_MAX_BYTES / KIB));
}

static bool encode_bank(const struct memory_work *work,
                        const struct nimi_create_bank_request *from, struct fault *fault) {
    const struct google_timestamp now = nimi_moment(clock_unix_ms());
    const struct nimi_memory_bank bank = {.bank_id = str_of(work->creating->id, ULID_LEN),
                                          .locator = &work->locator.message,
                                          .embedding_profile = from->embedding_profile,
                                          .display_name = from->display_name,
                                          .public_api_writable = true,
                                          .metadata = from->metadata,
                                          .created_at = &now,
                                          .updated_at = &now};
    if (from->display_name.len > NAME_MAX_BYTES)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "display_name has %zu bytes, at most %d are allowed",
                         from->display_name.len, NAME_MAX_BYTES);
    return create_put_body(&bank, &work->creating->body, fault);
}

/* Its texts are short, as embed_profile_is_ok() has checked. */
static bool keep_profile(struct memory_creating *creating,
                         const struct nimi_memory_embedding_profile *from,
                         struct fault *fault) {
    struct nimi_memory_embedding_profile *to = &creating->profile;
    if (!from) return true;
    *to = *from;
    return embed_profile_is_ok(from, fault) &&
           (arena_str(creating->arena, from->provider, &to->provider) &&
            arena_str(creating->arena, from->model_id, &to->model_id) &&
            arena_str(creating->arena, from->version, &to->version));
}

/* --- the answer --------------------------------------------------------------------------- */

static void reply_bank(struct nimi_call *call, const struct bank_item *item) {
    struct arena *arena = arena_new(MIB);
    struct nimi_memory_bank bank;
    memory_bank_of(item, arena, &bank);
    nimi_reply(call, &nimi_create_bank_response_table,
               &(struct nimi_create_bank_response){.bank = &bank});
    arena_free(arena);
}

static void on_created(const struct bank_answer *answer, const struct err *failed, void *ctx) {
    struct memory_work *work = ctx;
    struct nimi_call *call = kept_call_answered(&work->kept, failed, !failed && answer->made);
    if (!failed && work->creating->there[0]) {
        bank_pruner_wake(&work->instance->bank_pruner);
        embedder_wake(&work->instance->embedder);
    }
    if (call) reply_bank(call, &answer->items[0]);
    memory_work_end(work);
}

static void write_bank(struct memory_work *work) {
    struct memory_creating *creating = work->creating;
    const struct bank_where where = memory_where(work);
    struct loop *loop = work->kept.call->loop;
    size_t dimension = (size_t)creating->profile.dimension;
    if (creating->there[0]) {
        bank_reindex_start(work->kept.store, loop, &where, str_from(creating->there),
                           buf_str(&creating->body), dimension, on_created, work);
    } else {
        bank_create_start(work->kept.store, loop, &where, str_of(creating->id, ULID_LEN),
                          buf_str(&creating->body), dimension,
                          &(struct bank_event){work->locator.key, buf_str(&creating->event)},
                          on_created, work);
    }
}

/* --- the model ---------------------------------------------------------------------------- */

/* The call is over before anything was written. */
static void create_on_left(struct kept_call *kept) {
    memory_work_end(CONTAINER_OF(kept, struct memory_work, kept));
}

/* A model that cannot be asked now makes the vectors later. */
static bool may_work_later(enum embed_end how, const struct err *failed) {
    return how == EMBED_DOWN &&
           (failed->code == ERR_UNAVAILABLE || failed->code == ERR_DEADLINE_EXCEEDED ||
            failed->code == ERR_RESOURCE_EXHAUSTED);
}

static void on_probed(enum embed_end how, const float *values, const struct err *failed,
                      void *ctx) {
    struct memory_work *work = ctx;
    struct fault fault;
    (void)values;
    work->embed = NULL;
    work->kept.left = NULL;
    if (how == EMBED_OK || may_work_later(how, failed)) {
        write_bank(work);
        return;
    }
    fault_set(&fault,
              how == EMBED_UNFIT ? NIMI_PROTOCOL_ENVELOPE_INVALID
                                 : NIMI_KNOWLEDGE_EMBEDDING_PROFILE_UNAVAILABLE,
              "%s", failed->text);
    memory_work_refuse(work, &fault);
}

static void probe(struct memory_work *work) {
    const struct str text = STR("weir");
    struct fault fault;
    work->embed = embed_start(&(struct embed_options){.instance = work->kept.call->instance,
                                                      .profile = &work->creating->profile,
                                                      .owner = work->kept.log.owner,
                                                      .texts = &text,
                                                      .count = 1,
                                                      .total_ms = PROBE_MS,
                                                      .done = on_probed,
                                                      .ctx = work},
                              &fault);
    work->kept.left = create_on_left;
    if (!work->embed) memory_work_refuse(work, &fault);
}

/* --- whether it is there ------------------------------------------------------------------ */

/* Make the body of the bank as it is there, but for the profile. *ret_same: it keeps its own. */
static bool take_over(struct memory_work *work, const struct bank_item *item, bool *ret_same,
                      struct fault *fault) {
    struct memory_creating *creating = work->creating;
    const struct google_timestamp now = nimi_moment(clock_unix_ms());
    struct nimi_memory_bank bank;
    memory_bank_of(item, creating->arena, &bank);
    *ret_same = embed_profile_same(bank.embedding_profile, &creating->profile) ||
                creating->profile.migration_policy != NIMI_MEMORY_MIGRATION_POLICY_REINDEX ||
                item->name.len > ULID_LEN;
    if (*ret_same) return true;
    memcpy(creating->there, item->name.at, item->name.len);
    bank.embedding_profile = &creating->profile;
    bank.updated_at = &now;
    return create_put_body(&bank, &creating->body, fault);
}

static void create_on_looked(const struct bank_answer *answer, const struct err *failed,
                             void *ctx) {
    struct memory_work *work = ctx;
    struct fault fault;
    bool same = false;
    bool absent = failed && failed->code == ERR_NOT_FOUND;
    struct nimi_call *call = kept_call_answered(&work->kept, absent ? NULL : failed, false);
    if (!call) {
        memory_work_end(work);
    } else if (!absent && !take_over(work, &answer->items[0], &same, &fault)) {
        memory_work_refuse(work, &fault);
    } else if (same) {
        reply_bank(call, &answer->items[0]);
        memory_work_end(work);
    } else {
        probe(work);
    }
}

void memory_create_bank(struct nimi_call *call, const void *request) {
    const struct nimi_create_bank_request *from = request;
    struct memory_work *work = memory_work_new(call, from->context);
    struct fault fault;
    if (!work) return;
    work->creating = creating_new();
    if (!locator_read_public(from->locator, &work->locator, &fault) ||
        !app_is_own(work, &fault) ||
        !keep_profile(work->creating, from->embedding_profile, &fault) ||
        !encode_bank(work, from, &fault)) {
        memory_work_refuse(work, &fault);
        return;
    }
    const struct bank_where where = memory_where(work);
    memory_event_put(&work->creating->event, NIMI_MEMORY_EVENT_TYPE_BANK_CREATED,
                     &work->locator, (struct nimi_memory_event){.sequence = 0});
    if (from->embedding_profile) {
        bank_get_start(work->kept.store, call->loop, &where, create_on_looked, work);
    } else {
        write_bank(work);
    }
}
