#include "store/bank.h"

#include "base/mem.h"
#include "store/audit.h"
#include "store/bank_inner.h"
#include "store/bank_vector.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define PRUNE_RECORDS "200" /* of a deleted bank, in one transaction */

/* --- requests ----------------------------------------------------------------------------- */

void bank_ask_answer(const struct err *failed, void *ctx) {
    struct bank_ask *ask = ctx;
    if (ask->done) ask->done(&ask->answer, failed, ask->ctx);
    arena_free(ask->asked);
    arena_free(ask->found);
    bank_search_free(ask->search);
    free(ask);
}

void bank_give_up(struct bank_ask *ask) {
    atomic_store(&ask->given_up, true);
}

void bank_leave(struct bank_ask *ask) {
    if (ask) ask->done = NULL;
}

/* The caller has checked each text's length. */
struct str bank_keep(struct bank_ask *ask, struct str text) {
    struct str kept = STR_EMPTY;
    bool fits = arena_str(ask->asked, text, &kept);
    assert(fits);
    (void)fits;
    return kept;
}

struct bank_event bank_keep_event(struct bank_ask *ask, const struct bank_event *event) {
    return (struct bank_event){bank_keep(ask, event->label), bank_keep(ask, event->bytes)};
}

struct bank_ask *bank_ask_new(const struct bank_where *where, size_t texts_max,
                              bank_done_fn *done, void *ctx,
                              bool (*fn)(struct database *, void *, struct err *)) {
    struct bank_ask *ask = MEM_NEW(struct bank_ask);
    ask->task = (struct store_task){.fn = fn, .on_done = bank_ask_answer};
    ask->asked = arena_new(texts_max + 8 * KIB);
    ask->where = (struct bank_where){
        {bank_keep(ask, where->owner.app), bank_keep(ask, where->owner.subject)},
        bank_keep(ask, where->locator)};
    ask->done = done;
    ask->ctx = ctx;
    return ask;
}

/* --- answers ------------------------------------------------------------------------------ */

struct bank_item *bank_answer_begin(struct bank_ask *ask, size_t count, size_t max_bytes) {
    arena_free(ask->found);
    ask->found = arena_new(max_bytes + (count + 1) * (sizeof(struct bank_item) + 128));
    struct bank_item *items = arena_alloc(ask->found, (count + 1) * sizeof(*items));
    assert(items);
    ask->answer = (struct bank_answer){.items = items};
    return items;
}

bool bank_find_text(struct bank_ask *ask, struct str text, struct str *ret, struct err *e) {
    return arena_str(ask->found, text, ret) ||
           err_set(e, ERR_RESOURCE_EXHAUSTED, "memory: the answer is too large");
}

bool bank_take_named(struct bank_ask *ask, struct prepared *row, struct bank_item *ret,
                     struct err *e) {
    return bank_find_text(ask, database_bytes(row, 0), &ret->name, e) &&
           bank_find_text(ask, database_bytes(row, 1), &ret->body, e);
}

/* --- what requests have in common --------------------------------------------------------- */

static bool bank_missing(struct err *e) {
    return err_set(e, ERR_NOT_FOUND, "memory bank not found");
}

#define WHERE " WHERE app = ?1 AND subject = ?2 AND locator = ?3 AND state = 0"

bool bank_find(struct database *db, const struct bank_where *where, struct bank_sums *ret,
               struct err *e) {
    struct database_rows find =
        database_ask(db,
                     "SELECT id, records, words, bytes, dimension, space, newest"
                     " FROM bank" WHERE,
                     VALUES(sql_bytes(where->owner.app), sql_bytes(where->owner.subject),
                            sql_bytes(where->locator)),
                     e);
    bool found = database_next(&find, e);
    if (found)
        *ret = (struct bank_sums){.id = database_number_of(find.row, 0),
                                  .records = database_number_of(find.row, 1),
                                  .words = database_number_of(find.row, 2),
                                  .bytes = database_number_of(find.row, 3),
                                  .dimension = database_number_of(find.row, 4),
                                  .space = database_number_of(find.row, 5),
                                  .newest = database_number_of(find.row, 6)};
    return database_end(&find) && (found || bank_missing(e));
}

bool bank_note_sums(struct database *db, const struct bank_sums *sums, struct err *e) {
    return database_run_with(
        db, "UPDATE bank SET records = ?, words = ?, bytes = ?, newest = ? WHERE id = ?",
        VALUES(sql_number(sums->records), sql_number(sums->words), sql_number(sums->bytes),
               sql_number(sums->newest), sql_number(sums->id)),
        e);
}

bool bank_append_events(struct database *db, const struct bank_ask *ask,
                        const struct event_log_entry *entries, size_t count, struct err *e) {
    const struct event_log_key key = {.kind = EVENT_LOG_MEMORY, .owner = ask->where.owner};
    return event_log_append(db, &key, entries, count, e);
}

/* As of other memories, the audit log has a digest only, so that they can be forgotten. */
bool bank_audit(struct database *db, const struct bank_ask *ask, struct str operation,
                size_t count, struct err *e) {
    const struct str texts[] = {ask->where.locator, ask->name, ask->body};
    uint8_t digest[AUDIT_HASH_BYTES];
    struct audit_record record = {
        .texts = {[AUDIT_DOMAIN] = STR_INIT("runtime.memory"),
                  [AUDIT_OPERATION] = operation,
                  [AUDIT_WORKSPACE] = ask->where.owner.app,
                  [AUDIT_USER] = ask->where.owner.subject,
                  [AUDIT_CONTRACT] = STR_INIT("nimi"),
                  [AUDIT_DIGEST] = {(const char *)digest, sizeof(digest)}}};
    audit_digest(texts, ARRAY_LEN(texts), digest);
    audit_set(&record, AUDIT_COUNT, count);
    audit_set(&record, AUDIT_OUTCOME, ERR_NONE);
    return audit_note(db, &record, e);
}

struct str bank_place(int64_t bank, char room[static BANK_PLACE_BYTES]) {
    snprintf(room, BANK_PLACE_BYTES, "b%" PRId64, bank);
    return str_from(room);
}

/* --- create ------------------------------------------------------------------------------- */

bool bank_read(struct database *db, struct bank_ask *ask, bool *ret_found, struct err *e) {
    struct bank_item *item = bank_answer_begin(ask, 1, BANK_BODY_MAX_BYTES + KIB);
    struct database_rows find =
        database_ask(db, "SELECT name, body FROM bank" WHERE,
                     VALUES(sql_bytes(ask->where.owner.app),
                            sql_bytes(ask->where.owner.subject), sql_bytes(ask->where.locator)),
                     e);
    *ret_found = database_next(&find, e);
    if (*ret_found) {
        ask->answer.count = 1;
        find.ok = bank_take_named(ask, find.row, item, e);
    }
    return database_end(&find);
}

static bool owner_has_room(struct database *db, const struct bank_ask *ask, struct err *e) {
    int64_t count = 0;
    if (!database_number_with(
            db, "SELECT count(*) FROM bank WHERE app = ? AND subject = ? AND state = 0",
            VALUES(sql_bytes(ask->where.owner.app), sql_bytes(ask->where.owner.subject)),
            &count, e))
        return false;
    return count < BANK_OWNER_BANKS_MAX ||
           err_set(e, ERR_RESOURCE_EXHAUSTED,
                   "memory: an app and subject may have %d banks; delete one",
                   BANK_OWNER_BANKS_MAX);
}

static bool put_bank(struct database *db, const struct bank_ask *ask, struct err *e) {
    int64_t space = 0;
    if (ask->dimension && !bank_space_new(db, &space, e)) return false;
    return database_run_with(
        db,
        "INSERT INTO bank(app, subject, locator, name, body, dimension,"
        " space, state, records, words, bytes)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0, 0, 0)",
        VALUES(sql_bytes(ask->where.owner.app), sql_bytes(ask->where.owner.subject),
               sql_bytes(ask->where.locator), sql_bytes(ask->name), sql_bytes(ask->body),
               sql_number((int64_t)ask->dimension), sql_number(space)),
        e);
}

static bool run_create(struct database *db, void *ctx, struct err *e) {
    struct bank_ask *ask = ctx;
    bool found = false;
    if (!bank_read(db, ask, &found, e)) return false;
    if (found) return true;
    struct bank_item *item = bank_answer_begin(ask, 1, 0);
    *item = (struct bank_item){.name = ask->name, .body = ask->body};
    ask->answer.count = 1;
    ask->answer.made = true;
    const struct event_log_entry entry = {
        .label = ask->event.label, .bytes = ask->event.bytes, .body = ask->body};
    return owner_has_room(db, ask, e) && put_bank(db, ask, e) &&
           bank_append_events(db, ask, &entry, 1, e) &&
           bank_audit(db, ask, STR("bank.create"), 1, e);
}

struct bank_ask *bank_create_start(struct store *store, struct loop *loop,
                                   const struct bank_where *where, struct str name,
                                   struct str body, size_t dimension,
                                   const struct bank_event *event, bank_done_fn *done,
                                   void *ctx) {
    assert(body.len <= BANK_BODY_MAX_BYTES && dimension <= BANK_DIMENSION_MAX);
    struct bank_ask *ask =
        bank_ask_new(where, body.len + event->bytes.len, done, ctx, run_create);
    ask->name = bank_keep(ask, name);
    ask->body = bank_keep(ask, body);
    ask->dimension = dimension;
    ask->event = bank_keep_event(ask, event);
    store_run(store, loop, &ask->task, ask);
    return ask;
}

/* --- get and list ------------------------------------------------------------------------- */

static bool run_get(struct database *db, void *ctx, struct err *e) {
    bool found = false;
    if (!bank_read(db, ctx, &found, e)) return false;
    return found || bank_missing(e);
}

struct bank_ask *bank_get_start(struct store *store, struct loop *loop,
                                const struct bank_where *where, bank_done_fn *done, void *ctx) {
    struct bank_ask *ask = bank_ask_new(where, 0, done, ctx, run_get);
    ask->task.reads_only = true;
    store_run(store, loop, &ask->task, ask);
    return ask;
}

static bool run_list(struct database *db, void *ctx, struct err *e) {
    struct bank_ask *ask = ctx;
    struct bank_item *items =
        bank_answer_begin(ask, BANK_OWNER_BANKS_MAX,
                          BANK_OWNER_BANKS_MAX * (BANK_BODY_MAX_BYTES + BANK_NAME_MAX_BYTES));
    struct database_rows list = database_ask(
        db,
        "SELECT name, body FROM bank WHERE app = ? AND subject = ?"
        " AND state = 0 ORDER BY name",
        VALUES(sql_bytes(ask->where.owner.app), sql_bytes(ask->where.owner.subject)), e);
    while (database_next(&list, e))
        list.ok = bank_take_named(ask, list.row, &items[ask->answer.count++], e);
    return database_end(&list);
}

struct bank_ask *bank_list_start(struct store *store, struct loop *loop,
                                 const struct store_owner *owner, bank_done_fn *done,
                                 void *ctx) {
    const struct bank_where where = {.owner = *owner};
    struct bank_ask *ask = bank_ask_new(&where, 0, done, ctx, run_list);
    ask->task.reads_only = true;
    store_run(store, loop, &ask->task, ask);
    return ask;
}

/* --- delete ------------------------------------------------------------------------------- */

static bool run_delete(struct database *db, void *ctx, struct err *e) {
    struct bank_ask *ask = ctx;
    struct bank_sums sums;
    bool found = false;
    if (!bank_find(db, &ask->where, &sums, e) || !bank_read(db, ask, &found, e)) return false;
    const struct event_log_entry entry = {.label = ask->event.label,
                                          .bytes = ask->event.bytes,
                                          .body = ask->answer.items[0].body};
    return database_run_with(db, "UPDATE bank SET state = 1, body = x'' WHERE id = ?1",
                             VALUES(sql_number(sums.id)), e) &&
           bank_space_end(db, sums.space, e) && bank_append_events(db, ask, &entry, 1, e) &&
           bank_audit(db, ask, STR("bank.delete"), (size_t)sums.records, e);
}

struct bank_ask *bank_delete_start(struct store *store, struct loop *loop,
                                   const struct bank_where *where,
                                   const struct bank_event *event, bank_done_fn *done,
                                   void *ctx) {
    struct bank_ask *ask = bank_ask_new(where, event->bytes.len, done, ctx, run_delete);
    ask->event = bank_keep_event(ask, event);
    store_run(store, loop, &ask->task, ask);
    return ask;
}

/* --- prune -------------------------------------------------------------------------------- */

static bool prune_records(struct database *db, int64_t bank, bool *ret_any, struct err *e) {
    struct bank_sums unused = {.id = bank};
    struct database_rows list =
        database_ask(db,
                     "SELECT id, word_count, length(body), words FROM bank_record"
                     " WHERE bank = ? LIMIT " PRUNE_RECORDS,
                     VALUES(sql_number(bank)), e);
    while (database_next(&list, e)) {
        *ret_any = true;
        list.ok = bank_drop_record(db, list.row, &unused, e);
    }
    return database_end(&list);
}

static bool run_prune(struct database *db, void *ctx, struct err *e) {
    struct bank_ask *ask = ctx;
    int64_t bank = 0;
    bool any = false;
    bank_answer_begin(ask, 0, 0);
    if (!bank_space_prune(db, &ask->answer.more, e)) return false;
    if (ask->answer.more) return true;
    if (!database_number(db, "SELECT id FROM bank WHERE state = 1 LIMIT 1", &bank, e))
        return false;
    ask->answer.more = bank != 0;
    if (!bank) return true;
    if (!prune_records(db, bank, &any, e)) return false;
    return any ||
           database_run_with(db, "DELETE FROM bank WHERE id = ?1", VALUES(sql_number(bank)), e);
}

struct bank_ask *bank_prune_start(struct store *store, struct loop *loop, bank_done_fn *done,
                                  void *ctx) {
    const struct bank_where none = {.locator = STR_EMPTY};
    struct bank_ask *ask = bank_ask_new(&none, 0, done, ctx, run_prune);
    store_run(store, loop, &ask->task, ask);
    return ask;
}
