#include "base/mem.h"
#include "store/bank_inner.h"
#include "store/bank_vector.h"
#include "store/words.h"

#include <assert.h>
#include <inttypes.h>

/* --- retain ------------------------------------------------------------------------------- */

/* The statements of one retain. */
struct retaining {
    struct prepared *put, *learn;
};

static int count_word(void *ctx, int flags, const char *token, int len, int from, int to) {
    (void)flags, (void)token, (void)len, (void)from, (void)to;
    ++*(int64_t *)ctx;
    return SQLITE_OK;
}

static bool put_record(struct database *db, const struct retaining *by,
                       const struct bank_record *record, struct bank_sums *sums,
                       int64_t *ret_id, struct err *e) {
    int64_t words = 0;
    if (!words_each(db, record->words, count_word, &words, e)) return false;
    database_bind_number(by->put, 1, sums->id);
    database_bind(by->put, 2, record->name);
    database_bind_number(by->put, 3, record->kind);
    database_bind_number(by->put, 4, record->class);
    database_bind_number(by->put, 5, record->at_us);
    database_bind_number(by->put, 6, words);
    database_bind(by->put, 7, record->words);
    database_bind(by->put, 8, record->body);
    if (!database_do(db, by->put, e) || !database_new_id(db, ret_id, e)) return false;
    sums->records++;
    sums->words += words;
    sums->bytes += (int64_t)record->body.len;
    sums->newest = *ret_id;
    return true;
}

static const char *learn_sql(const struct database *db) {
    return database_sql(db, "INSERT INTO bank_words(rowid, place, words) VALUES(?, ?, ?)",
                        "INSERT INTO bank_words(id, tokens)"
                        " VALUES(?, string_to_array(rtrim('=' || ? || ' ' || ?), ' '))");
}

static bool learn_words(struct database *db, const struct retaining *by, int64_t bank,
                        int64_t id, struct str words, struct err *e) {
    char room[BANK_PLACE_BYTES];
    struct str place = bank_place(bank, room);
    struct buf list;
    buf_init(&list, WORDS_LIST_MAX_BYTES);
    bool ok = !database_is_postgres(db) || words_list(db, words, &list, e);
    if (ok) {
        database_bind_number(by->learn, 1, id);
        database_bind_text(by->learn, 2, place);
        database_bind_text(by->learn, 3, database_is_postgres(db) ? buf_str(&list) : words);
        ok = database_do(db, by->learn, e);
    }
    buf_done(&list);
    return ok;
}

static bool put_records(struct database *db, const struct bank_ask *ask,
                        const struct retaining *by, struct bank_sums *sums,
                        struct event_log_entry *entries, struct err *e) {
    for (size_t i = 0; i < ask->count; i++) {
        const struct bank_record *record = &ask->records[i];
        int64_t id;
        if (!put_record(db, by, record, sums, &id, e) ||
            !learn_words(db, by, sums->id, id, record->words, e))
            return false;
        entries[i] =
            (struct event_log_entry){.label = ask->label, .bytes = record->event, .record = id};
    }
    return true;
}

static bool bank_has_room(const struct bank_sums *sums, const struct bank_ask *ask,
                          struct err *e) {
    int64_t bytes = sums->bytes;
    for (size_t i = 0; i < ask->count; i++) bytes += (int64_t)ask->records[i].body.len;
    if (sums->records + (int64_t)ask->count > BANK_RECORDS_MAX ||
        bytes > (int64_t)BANK_MAX_BYTES)
        return err_set(e, ERR_RESOURCE_EXHAUSTED,
                       "memory: a bank may have %d records and %d MiB; delete some of them",
                       BANK_RECORDS_MAX, (int)(BANK_MAX_BYTES / MIB));
    int64_t vectors = BANK_VECTORS_MAX_BYTES / (int64_t)sizeof(float);
    if ((sums->records + (int64_t)ask->count) * sums->dimension > vectors)
        return err_set(e, ERR_RESOURCE_EXHAUSTED,
                       "memory: a bank with vectors of %" PRId64 " numbers may have %" PRId64
                       " records; delete some of them",
                       sums->dimension, vectors / sums->dimension);
    return true;
}

static bool run_retain(struct database *db, void *ctx, struct err *e) {
    struct bank_ask *ask = ctx;
    struct event_log_entry entries[BANK_RETAIN_MAX];
    struct retaining by = {.put = NULL};
    struct bank_sums sums;
    bank_answer_begin(ask, 0, 0);
    if (!bank_find(db, &ask->where, &sums, e) || !bank_has_room(&sums, ask, e)) return false;
    bool ok =
        database_prepare(db,
                         "INSERT INTO bank_record(bank, name, kind, class, at_us, word_count,"
                         " words, body) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
                         &by.put, e) &&
        database_prepare(db, learn_sql(db), &by.learn, e) &&
        put_records(db, ask, &by, &sums, entries, e) && bank_note_sums(db, &sums, e) &&
        bank_append_events(db, ask, entries, ask->count, e) &&
        bank_audit(db, ask, STR("retain"), ask->count, e) &&
        once_reply_put(db, ask->has_made ? &ask->made : NULL, e);
    database_finalize(by.put);
    database_finalize(by.learn);
    return ok;
}

static size_t records_bytes(const struct bank_record *records, size_t count) {
    size_t bytes = count * (sizeof(*records) + 256);
    for (size_t i = 0; i < count; i++)
        bytes += records[i].body.len + records[i].words.len + records[i].event.len;
    return bytes;
}

struct bank_ask *bank_retain_start(struct store *store, struct loop *loop,
                                   const struct bank_where *where,
                                   const struct bank_record *records, size_t count,
                                   struct str label, const struct kept_reply *made,
                                   bank_done_fn *done, void *ctx) {
    assert(count > 0 && count <= BANK_RETAIN_MAX);
    size_t texts = records_bytes(records, count) + (made ? made->reply.len : 0);
    struct bank_ask *ask = bank_ask_new(where, texts, done, ctx, run_retain);
    ask->has_made = made != NULL;
    if (made) {
        ask->made = *made;
        ask->made.reply = bank_keep(ask, made->reply);
    }
    ask->records = arena_alloc(ask->asked, count * sizeof(*records));
    assert(ask->records);
    ask->count = count;
    ask->label = bank_keep(ask, label);
    for (size_t i = 0; i < count; i++) {
        assert(records[i].body.len <= BANK_RECORD_MAX_BYTES &&
               records[i].words.len <= BANK_RECORD_MAX_BYTES);
        ask->records[i] = records[i];
        ask->records[i].name = bank_keep(ask, records[i].name);
        ask->records[i].body = bank_keep(ask, records[i].body);
        ask->records[i].words = bank_keep(ask, records[i].words);
        ask->records[i].event = bank_keep(ask, records[i].event);
    }
    ask->body = ask->records[0].body; /* for the digest of the audit log */
    store_run(store, loop, &ask->task, ask);
    return ask;
}

/* --- forget ------------------------------------------------------------------------------- */

/* Removing words from the index needs the old text. */
bool bank_drop_record(struct database *db, struct prepared *row, struct bank_sums *sums,
                      struct err *e) {
    char room[BANK_PLACE_BYTES];
    struct str place = bank_place(sums->id, room), words = database_bytes(row, 3);
    int64_t id = database_number_of(row, 0);
    bool ok =
        database_is_postgres(db)
            ? database_run_with(db, "DELETE FROM bank_words WHERE id = ?1",
                                VALUES(sql_number(id)), e)
            : database_run_with(db,
                                "INSERT INTO bank_words(bank_words, rowid, place,"
                                " words) VALUES('delete', ?, ?, ?)",
                                VALUES(sql_number(id), sql_text(place), sql_text(words)), e);
    if (!ok || !database_run_with(db, "DELETE FROM bank_record WHERE id = ?1",
                                  VALUES(sql_number(id)), e))
        return false;
    if (sums->space &&
        !database_run_with(db, "DELETE FROM bank_vector WHERE place = ?1",
                           VALUES(sql_number(bank_vector_place(sums->space, id))), e))
        return false;
    sums->records--;
    sums->words -= database_number_of(row, 1);
    sums->bytes -= database_number_of(row, 2);
    return true;
}

static bool forget_one(struct database *db, struct bank_ask *ask, struct prepared *find,
                       struct str name, struct bank_sums *sums, struct err *e) {
    struct bank_item *items = (struct bank_item *)(uintptr_t)ask->answer.items;
    bool row = false;
    database_bind_number(find, 1, sums->id);
    database_bind(find, 2, name);
    bool ok = database_row(db, find, &row, e);
    if (ok && row) {
        items[ask->answer.count++].name = name;
        ok = bank_drop_record(db, find, sums, e);
    }
    database_reset(find);
    return ok;
}

static bool forget_all(struct database *db, struct bank_ask *ask, struct bank_sums *sums,
                       struct err *e) {
    struct prepared *find = NULL;
    bool ok = database_prepare(db,
                               "SELECT id, word_count, length(body), words FROM bank_record"
                               " WHERE bank = ? AND name = ?",
                               &find, e);
    for (size_t i = 0; ok && i < ask->count; i++)
        ok = forget_one(db, ask, find, ask->names[i], sums, e);
    database_finalize(find);
    return ok;
}

static bool tell_forgotten(struct database *db, const struct bank_ask *ask, struct err *e) {
    struct buf names;
    buf_init(&names, BANK_FORGET_MAX * (BANK_NAME_MAX_BYTES + 1));
    for (size_t i = 0; i < ask->answer.count; i++) {
        buf_append(&names, ask->answer.items[i].name);
        buf_append_byte(&names, '\n');
    }
    const struct event_log_entry entry = {
        .label = ask->event.label, .bytes = ask->event.bytes, .body = buf_str(&names)};
    bool ok = bank_append_events(db, ask, &entry, 1, e);
    buf_done(&names);
    return ok;
}

static bool run_forget(struct database *db, void *ctx, struct err *e) {
    struct bank_ask *ask = ctx;
    struct bank_sums sums;
    bank_answer_begin(ask, ask->count, 0);
    if (!bank_find(db, &ask->where, &sums, e) || !forget_all(db, ask, &sums, e)) return false;
    if (ask->answer.count == 0) return true;
    return bank_note_sums(db, &sums, e) && tell_forgotten(db, ask, e) &&
           bank_audit(db, ask, STR("forget"), ask->answer.count, e);
}

struct bank_ask *bank_forget_start(struct store *store, struct loop *loop,
                                   const struct bank_where *where, const struct str *names,
                                   size_t count, const struct bank_event *event,
                                   bank_done_fn *done, void *ctx) {
    assert(count > 0 && count <= BANK_FORGET_MAX);
    struct bank_ask *ask = bank_ask_new(
        where, count * (sizeof(struct str) + BANK_NAME_MAX_BYTES + 32) + event->bytes.len, done,
        ctx, run_forget);
    ask->names = arena_alloc(ask->asked, count * sizeof(*names));
    assert(ask->names);
    ask->count = count;
    ask->event = bank_keep_event(ask, event);
    for (size_t i = 0; i < count; i++) {
        assert(names[i].len <= BANK_NAME_MAX_BYTES);
        ask->names[i] = bank_keep(ask, names[i]);
    }
    store_run(store, loop, &ask->task, ask);
    return ask;
}
