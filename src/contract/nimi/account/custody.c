/* What is on disk of the account, and what is published of it.
 *
 *     KEPT_ACCOUNT          "subject", "issuer", "expires_ms" (Unix, decimal); none: no one
 *     KEPT_ACCOUNT_EVENT    the newest ACCOUNT_EVENTS_KEPT events, by sequence
 *     KEPT_ACCOUNT_BINDING  the relations of bindings that are not over, by id
 *
 * The records of an account are on disk before it counts (account_write). Events and bindings
 * are published at once and written right after: a crash may lose the last moment of them, and
 * the next start says what is true then. No token is ever among them. */
#include "contract/nimi/account/inner.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

#define DONE NIMI_ACCOUNT_REASON_CODE_ACTION_EXECUTED
#define KEY_BYTES 8
#define NUMBERS_OF_AN_EPOCH 32 /* bits */
#define EVENT_MAX_BYTES (64 * KIB)

/* --- writing ------------------------------------------------------------------------------ */

static void write_records(struct nimi_account *account, const struct kept_record *records,
                          size_t count, const struct account_now *now) {
    if (account->store) kept_write_start(account->store, now->loop, records, count, NULL, NULL);
}

void account_keep_binding(struct nimi_account *account, const struct binding *binding,
                          bool gone, const struct account_now *now) {
    struct buf bytes;
    buf_init(&bytes, EVENT_MAX_BYTES);
    if (!gone) pb_encode(&nimi_scoped_app_binding_relation_table, &binding->relation, &bytes);
    const struct kept_record record = {.space = KEPT_ACCOUNT_BINDING,
                                       .key = str_of(binding->id, ULID_LEN),
                                       .bytes = buf_str(&bytes),
                                       .gone = gone};
    write_records(account, &record, 1, now);
    buf_done(&bytes);
}

static struct str custody_key_of(uint64_t number, char room[static KEY_BYTES]) {
    for (int i = 0; i < KEY_BYTES; i++) room[i] = (char)(number >> 8 * (KEY_BYTES - 1 - i));
    return str_of(room, KEY_BYTES);
}

static bool custody_number_of(struct str key, uint64_t *ret) {
    if (key.len != KEY_BYTES) return false;
    *ret = 0;
    for (size_t i = 0; i < KEY_BYTES; i++) *ret = *ret << 8 | (unsigned char)key.at[i];
    return true;
}

/* Count one more event on disk. Returns the number of the one that makes room for it; 0:
 * none. */
static uint64_t count_event(struct nimi_account *account, uint64_t number) {
    uint64_t oldest = 0;
    if (account->kept_count == ACCOUNT_EVENTS_KEPT) {
        oldest = account->kept[account->kept_at];
    } else {
        account->kept_count++;
    }
    account->kept[account->kept_at] = number;
    account->kept_at = (account->kept_at + 1) % ACCOUNT_EVENTS_KEPT;
    return oldest;
}

static void keep_event(struct nimi_account *account,
                       const struct nimi_account_session_event *event,
                       const struct account_now *now) {
    char key[KEY_BYTES], oldest_key[KEY_BYTES];
    struct buf bytes;
    uint64_t oldest = count_event(account, event->sequence);
    buf_init(&bytes, EVENT_MAX_BYTES);
    pb_encode(&nimi_account_session_event_table, event, &bytes);
    const struct kept_record records[] = {
        {.space = KEPT_ACCOUNT_EVENT,
         .key = custody_key_of(event->sequence, key),
         .bytes = buf_str(&bytes)},
        {.space = KEPT_ACCOUNT_EVENT, .key = custody_key_of(oldest, oldest_key), .gone = true}};
    write_records(account, records, oldest ? 2 : 1, now);
    buf_done(&bytes);
}

struct kept_ask *account_write(struct nimi_account *account, enum account_act act,
                               const struct account_material *material,
                               const struct account_now *now, kept_done_fn *done, void *ctx) {
    char digits[24] = "";
    bool gone = act == ACCOUNT_LOGOUT || act == ACCOUNT_SWITCH;
    if (material)
        snprintf(digits, sizeof(digits), "%lld", (long long)material->expires_unix_ms);
    const struct kept_record records[] = {
        {KEPT_ACCOUNT, STR("subject"), material ? material->subject : STR_EMPTY, gone},
        {KEPT_ACCOUNT, STR("issuer"), material ? material->issuer : STR_EMPTY, gone},
        {KEPT_ACCOUNT, STR("expires_ms"), str_from(digits), gone}};
    if (!account->store) return NULL;
    return kept_write_start(account->store, now->loop, records, ARRAY_LEN(records), done, ctx);
}

/* --- publishing --------------------------------------------------------------------------- */

/* "APP\nINSTANCE\nSUBJECT", whose event it is; empty: everybody's. Ids hold no control
 * characters. */
static void put_label(const struct nimi_account_session_event *event, struct buf *out) {
    const struct nimi_scoped_app_binding_relation *of = event->binding_relation;
    buf_append(out, of ? of->runtime_app_id : STR_EMPTY);
    buf_append_byte(out, '\n');
    buf_append(out, of ? of->app_instance_id : STR_EMPTY);
    buf_append_byte(out, '\n');
    buf_append(out,
               event->account_projection ? event->account_projection->account_id : STR_EMPTY);
}

bool account_wants(struct str label, const void *ctx) {
    const struct account_filter *filter = ctx;
    struct str rest, app_instance, subject;
    struct str app = str_split(label, '\n', &rest);
    app_instance = str_split(rest, '\n', &subject);
    if (app.len &&
        (!str_equal(app, filter->app) || !str_equal(app_instance, filter->app_instance)))
        return false;
    return !filter->subject.len || !subject.len || str_equal(subject, filter->subject);
}

static void custody_publish(struct nimi_account *account,
                            struct nimi_account_session_event *event) {
    struct buf label;
    buf_init(&label, 4 * KIB);
    put_label(event, &label);
    topic_publish(account->topic,
                  &(struct topic_event){.type = &nimi_account_session_event_table,
                                        .message = event,
                                        .sequence = &event->sequence,
                                        .label = buf_str(&label)});
    buf_done(&label);
}

void account_publish(struct nimi_account *account, enum nimi_account_event_type type,
                     int reason, const struct binding *binding, const struct account_now *now) {
    char id[ULID_LEN + 1];
    ulid_new(id);
    const struct nimi_account_projection projection = {.account_id =
                                                           text_str(account->subject)};
    const struct google_timestamp at = {.seconds = now->unix_ms / 1000,
                                        .nanos = (int32_t)(now->unix_ms % 1000) * 1000000};
    struct nimi_account_session_event event = {
        .event_id = str_of(id, ULID_LEN),
        .emitted_at = &at,
        .event_type = (int32_t)type,
        .state = (int32_t)account->state,
        .reason_code = account_common_reason(reason),
        .account_reason_code = reason,
        .account_projection = projection.account_id.len ? &projection : NULL};
    if (binding) {
        event.binding_id = str_of(binding->id, ULID_LEN);
        event.binding_relation = &binding->relation;
    }
    custody_publish(account, &event);
    keep_event(account, &event, now);
}

void account_publish_status(struct nimi_account *account, int reason,
                            const struct account_now *now) {
    account->reason = reason;
    account_publish(account, NIMI_ACCOUNT_EVENT_TYPE_ACCOUNT_STATUS, reason, NULL, now);
}

/* --- reading ------------------------------------------------------------------------------ */

static struct str custody_find(const struct kept_record *records, size_t count,
                               const char *key) {
    for (size_t i = 0; i < count; i++) {
        if (records[i].space == KEPT_ACCOUNT && str_equal(records[i].key, str_from(key)))
            return records[i].bytes;
    }
    return STR_EMPTY;
}

/* An event that cannot be read is passed over: a gap, as if it had been dropped. */
static void restore_event(struct nimi_account *account, const struct kept_record *record) {
    struct arena *arena = arena_new(16 * EVENT_MAX_BYTES);
    struct nimi_account_session_event event;
    uint64_t number;
    struct err e;
    if (custody_number_of(record->key, &number) && number > topic_last(account->topic) &&
        pb_decode_view(&nimi_account_session_event_table, record->bytes, arena, &event, &e)) {
        topic_skip(account->topic, number - 1);
        custody_publish(account, &event);
        count_event(account, number);
    } else {
        log_warning("nimi account: an event in the store cannot be read");
    }
    arena_free(arena);
}

/* With fewer events than are kept, none was ever dropped. */
static void restore_topic(struct nimi_account *account, const struct kept_record *records,
                          size_t count) {
    uint64_t first = 1;
    size_t events = 0;
    for (size_t i = 0; i < count; i++) {
        if (records[i].space != KEPT_ACCOUNT_EVENT) continue;
        if (events++ == 0) custody_number_of(records[i].key, &first);
    }
    account->topic = topic_new(&(struct topic_options){
        .kind = TOPIC_EVENTS,
        .max_bytes = ACCOUNT_EVENTS_MAX_BYTES,
        .max_frames = ACCOUNT_EVENTS_KEPT,
        .first_sequence = events < ACCOUNT_EVENTS_KEPT || !first ? 1 : first});
    for (size_t i = 0; i < count; i++) {
        if (records[i].space == KEPT_ACCOUNT_EVENT) restore_event(account, &records[i]);
    }
    uint64_t epoch = account->store ? store_epoch(account->store) : 1;
    topic_skip(account->topic, epoch << NUMBERS_OF_AN_EPOCH);
}

/* Bindings of an earlier process are over, and those who hold them hear it. */
static void revoke_earlier(struct nimi_account *account, const struct kept_record *record,
                           const struct account_now *now) {
    struct arena *arena = arena_new(16 * EVENT_MAX_BYTES);
    struct binding binding = {.state = BINDING_ACTIVE};
    struct err e;
    if (record->key.len == ULID_LEN &&
        pb_decode_view(&nimi_scoped_app_binding_relation_table, record->bytes, arena,
                       &binding.relation, &e)) {
        memcpy(binding.id, record->key.at, ULID_LEN);
        binding_move(&binding, BINDING_REVOKED, NIMI_ACCOUNT_REASON_CODE_BINDING_STALE);
        account_publish(account, NIMI_ACCOUNT_EVENT_TYPE_BINDING_REVOKED,
                        NIMI_ACCOUNT_REASON_CODE_BINDING_STALE, &binding, now);
    }
    const struct kept_record gone = {
        .space = KEPT_ACCOUNT_BINDING, .key = record->key, .gone = true};
    write_records(account, &gone, 1, now);
    arena_free(arena);
}

/* What the records say of the account. */
static enum account_state restore_state(struct nimi_account *account,
                                        const struct kept_record *records, size_t count,
                                        account_trusts_fn *trusts, const void *ctx,
                                        const struct account_now *now) {
    struct str subject = custody_find(records, count, "subject");
    struct str issuer = custody_find(records, count, "issuer");
    uint64_t expires_ms;
    if (!trusts || !subject.len ||
        !str_to_u64(custody_find(records, count, "expires_ms"), &expires_ms))
        return ACCOUNT_ANONYMOUS;
    account->subject = text_copy(subject);
    account->issuer = text_copy(issuer);
    account->expires_unix_ms = (int64_t)expires_ms;
    account->expires_ms = account_loop_time(account->expires_unix_ms, now);
    if (!trusts(issuer, ctx)) return ACCOUNT_REAUTH_REQUIRED;
    return account->expires_unix_ms > now->unix_ms ? ACCOUNT_AUTHENTICATED : ACCOUNT_EXPIRED;
}

static int custody_reason_of(enum account_state state) {
    switch (state) {
    case ACCOUNT_EXPIRED: return NIMI_ACCOUNT_REASON_CODE_PROOF_EXPIRED;
    case ACCOUNT_REAUTH_REQUIRED: return NIMI_ACCOUNT_REASON_CODE_LOGIN_EXCHANGE_UNAVAILABLE;
    default: return DONE;
    }
}

static void restore(struct nimi_account *account, const struct kept_record *records,
                    size_t count, account_trusts_fn *trusts, const void *ctx,
                    const struct account_now *now) {
    bool first = !account->topic;
    if (first) restore_topic(account, records, count);
    enum account_state state = restore_state(account, records, count, trusts, ctx, now);
    for (size_t i = 0; first && i < count; i++) {
        if (records[i].space == KEPT_ACCOUNT_BINDING) revoke_earlier(account, &records[i], now);
    }
    account->known = true;
    account->reason = custody_reason_of(state);
    account_move(account, state);
    if (first && state == ACCOUNT_ANONYMOUS) return; /* nothing that anyone could have heard */
    account_publish(account, NIMI_ACCOUNT_EVENT_TYPE_CUSTODY_RECOVERED, DONE, NULL, now);
    account_publish_status(account, custody_reason_of(state), now);
}

void account_restore(struct nimi_account *account, const struct kept_record *records,
                     size_t count, const struct err *failed, account_trusts_fn *trusts,
                     const void *ctx, const struct account_now *now) {
    account_lock(account);
    if (failed) {
        account->retry_ms = now->ms + ACCOUNT_RETRY_MS;
    } else if (!account->known && !account->writing) {
        restore(account, records, count, trusts, ctx, now);
    }
    account_unlock(account);
}
