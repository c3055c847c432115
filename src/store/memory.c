#include "store/memory.h"

#include "base/clock.h"
#include "base/mem.h"
#include "store/audit.h"
#include "store/searches.h"
#include "store/task.h"
#include "store/words.h"

#include <assert.h>
#include <stdlib.h>

#define MATCH_MAX_BYTES (16 * KIB) /* of a query for the full-text index */

/* --- checks ------------------------------------------------------------------------------- */

/* PostgreSQL's text holds no NUL, so that none is taken, whatever the store is. */
static bool check_text(const char *what, struct str text, size_t max_bytes, struct err *e) {
    if (text.len > max_bytes)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "memory: %s has %zu bytes, at most %zu are allowed; shorten it", what,
                       text.len, max_bytes);
    if (str_find_byte(text, '\0') < text.len)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "memory: %s has a NUL (U+0000) at byte %zu, which a store of texts "
                       "cannot hold; leave it out",
                       what, str_find_byte(text, '\0'));
    return true;
}

bool memory_check_workspace(struct str workspace, struct err *e) {
    if (workspace.len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "memory: workspace_id is required");
    return check_text("workspace_id", workspace, MEMORY_WORKSPACE_MAX_BYTES, e);
}

bool memory_check_key(struct str key, struct err *e) {
    if (key.len == 0) return err_set(e, ERR_INVALID_ARGUMENT, "memory: key is required");
    return check_text("key", key, MEMORY_KEY_MAX_BYTES, e);
}

bool memory_check_entry(const struct memory_entry *entry, struct err *e) {
    return memory_check_key(entry->key, e) &&
           check_text("category", entry->category, MEMORY_CATEGORY_MAX_BYTES, e) &&
           check_text("content", entry->content, MEMORY_CONTENT_MAX_BYTES, e);
}

bool memory_check_query(const struct memory_query *query, struct err *e) {
    return check_text("category", query->category, MEMORY_CATEGORY_MAX_BYTES, e) &&
           check_text("the text to look for", query->words, MEMORY_WORDS_MAX_BYTES, e);
}

bool memory_page(struct memory_query *query, int64_t limit, int64_t offset, struct err *e) {
    if (limit < 0 || offset < 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "memory: %s must not be negative",
                       limit < 0 ? "limit" : "offset");
    query->limit = limit == 0 ? MEMORY_LIST_COMMON : (size_t)limit;
    if (query->limit > MEMORY_LIST_MAX) query->limit = MEMORY_LIST_MAX;
    query->offset = (size_t)offset;
    return true;
}

/* --- requests ----------------------------------------------------------------------------- */

struct memory_ask {
    struct store_task task;
    struct buf asked;          /* owns the request's texts */
    struct arena *texts;       /* of the answer; each run of the task makes it anew */
    struct memory_query query; /* for a put or remove only the workspace */
    struct memory_entry entry; /* for a put; for a remove only the key */
    struct audit_actor by;     /* of a put or remove */
    struct memory_answer answer;
    memory_done_fn *done; /* NULL: cancelled */
    void *ctx;
};

static void store_memory_on_done(const struct err *failed, void *ctx) {
    struct memory_ask *ask = ctx;
    if (ask->done) ask->done(&ask->answer, failed, ask->ctx);
    buf_done(&ask->asked);
    arena_free(ask->texts);
    free(ask);
}

void memory_forget(struct memory_ask *ask) {
    if (ask) ask->done = NULL;
}

/* Those that are there. */
static void keep_texts(struct memory_ask *ask) {
    struct str *const texts[] = {
        &ask->by.contract, &ask->by.user,        &ask->query.workspace, &ask->query.category,
        &ask->query.words, &ask->entry.category, &ask->entry.key,       &ask->entry.content};
    buf_keep_texts(&ask->asked, texts, ARRAY_LEN(texts));
}

static struct memory_ask *store_memory_ask_new(memory_done_fn *done, void *ctx,
                                               bool (*fn)(struct database *, void *,
                                                          struct err *)) {
    struct memory_ask *ask = MEM_NEW(struct memory_ask);
    ask->task = (struct store_task){.fn = fn, .on_done = store_memory_on_done};
    ask->done = done;
    ask->ctx = ctx;
    return ask;
}

/* Drop the result of an earlier attempt. */
static void begin_answer(struct memory_ask *ask, size_t max_bytes) {
    arena_free(ask->texts);
    ask->texts = arena_new(max_bytes);
    ask->answer = (struct memory_answer){.count = 0};
}

/* --- list and search ---------------------------------------------------------------------- */

#define ENTRIES                                                                                \
    "SELECT memory.category, memory.key, memory.content, created_us, updated_us FROM memory "
#define SAYING                                                                                 \
    "JOIN memory_words ON memory_words.rowid = memory.id"                                      \
    " WHERE memory_words MATCH ?5 AND workspace = ?1 "
#define NEWEST "ORDER BY updated_us DESC, memory.key, category "
#define BEST                                                                                   \
    "ORDER BY bm25(memory_words, 0.0, 2.0, 1.0), updated_us DESC, memory.key, category "
#define PAGE "LIMIT ?3 OFFSET ?4"

/* [has words][has a category]; ?1 workspace, ?2 category, ?5 words */
static const char *const questions[2][2] = {
    {
        ENTRIES "WHERE workspace = ?1 " NEWEST PAGE,
        ENTRIES "WHERE workspace = ?1 AND category = ?2 " NEWEST PAGE,
    },
    {
        ENTRIES SAYING BEST PAGE,
        ENTRIES SAYING "AND category = ?2 " BEST PAGE,
    },
};

/* PostgreSQL's table has the names that other programs know it by. A row that such a program
 * wrote has no `words`: they are made as they are needed. */
#define AS_TEXT(place) "convert_from(" place ", 'UTF8')"
#define MICROSECONDS(column) "CAST(extract(epoch FROM " column ") * 1000000 AS BIGINT)"
#define PG_ENTRIES                                                                             \
    "SELECT category, key, content, " MICROSECONDS("created_at") ", " MICROSECONDS(            \
        "updated_at") " FROM agent_memories WHERE workspace_id = " AS_TEXT("?1") " "
#define PG_CATEGORY "AND category = " AS_TEXT("?2") " "
#define PG_WORDS "coalesce(words, agent_memories_words(key, content))"
#define PG_SAYING "AND " PG_WORDS " @@ CAST(?5 AS tsquery) "
#define PG_NEWEST "updated_at DESC, key COLLATE \"C\", category COLLATE \"C\" "
#define PG_BEST                                                                                \
    "ORDER BY ts_rank('{0, 0, 0.5, 1}', " PG_WORDS ", CAST(?5 AS tsquery)) DESC, " PG_NEWEST

static const char *const postgres_questions[2][2] = {
    {
        PG_ENTRIES "ORDER BY " PG_NEWEST PAGE,
        PG_ENTRIES PG_CATEGORY "ORDER BY " PG_NEWEST PAGE,
    },
    {
        PG_ENTRIES PG_SAYING PG_BEST PAGE,
        PG_ENTRIES PG_CATEGORY PG_SAYING PG_BEST PAGE,
    },
};

static const char *question(const struct database *db, const struct memory_query *query) {
    size_t words = query->words.len > 0, category = query->category.len > 0;
    return database_sql(db, questions[words][category], postgres_questions[words][category]);
}

static bool memory_match(struct database *db, const struct memory_query *query,
                         struct buf *match, bool *ret_any, struct err *e) {
    return database_is_postgres(db) ? words_tsquery(db, query, match, ret_any, e)
                                    : words_query(db, query, match, ret_any, e);
}

static bool keep_row(struct memory_ask *ask, struct prepared *row, struct memory_entry *ret,
                     struct err *e) {
    if (arena_str(ask->texts, database_bytes(row, 0), &ret->category) &&
        arena_str(ask->texts, database_bytes(row, 1), &ret->key) &&
        arena_str(ask->texts, database_bytes(row, 2), &ret->content)) {
        ret->created_us = database_number_of(row, 3);
        ret->updated_us = database_number_of(row, 4);
        return true;
    }
    return err_set(e, ERR_RESOURCE_EXHAUSTED, "memory: the answer is too large");
}

static size_t row_bytes(struct prepared *row) {
    size_t bytes = 0;
    for (int column = 0; column < 3; column++) bytes += database_bytes(row, column).len;
    return bytes;
}

static bool read_rows(struct memory_ask *ask, struct database *db, struct prepared *rows,
                      struct err *e) {
    const struct memory_query *query = &ask->query;
    struct memory_entry *entries =
        arena_alloc(ask->texts, query->limit * sizeof(struct memory_entry));
    struct memory_answer *answer = &ask->answer;
    bool found, ok;
    size_t used = 0;
    assert(entries);
    answer->entries = entries;
    while ((ok = database_row(db, rows, &found, e)) && found) {
        size_t bytes = row_bytes(rows);
        answer->cut = answer->count > 0 && used + bytes > query->max_bytes;
        answer->more = answer->cut || answer->count == query->limit;
        if (answer->more) return true;
        if (!keep_row(ask, rows, &entries[answer->count], e)) return false;
        answer->count++;
        used += bytes;
    }
    return ok;
}

/* Room for the entries and their texts, with an arena's overhead, and for one entry more. */
static size_t answer_max_bytes(const struct memory_query *query) {
    size_t one = MEMORY_KEY_MAX_BYTES + MEMORY_CATEGORY_MAX_BYTES + MEMORY_CONTENT_MAX_BYTES;
    return query->max_bytes + one + (query->limit + 1) * (sizeof(struct memory_entry) + 64);
}

static bool run_list(struct database *db, void *ctx, struct err *e) {
    struct memory_ask *ask = ctx;
    const struct memory_query *query = &ask->query;
    struct buf match;
    struct prepared *rows = NULL;
    bool any = true, ok = false;
    begin_answer(ask, answer_max_bytes(query));
    buf_init(&match, MATCH_MAX_BYTES);
    if (query->words.len && !memory_match(db, query, &match, &any, e)) goto end;
    ok = !any;
    if (!any) goto end;
    if (!database_prepare(db, question(db, query), &rows, e)) goto end;
    database_bind(rows, 1, query->workspace);
    if (query->category.len) database_bind(rows, 2, query->category);
    database_bind_number(rows, 3, (int64_t)query->limit + 1);
    database_bind_number(rows, 4, (int64_t)query->offset);
    if (match.len) database_bind_text(rows, 5, buf_str(&match));
    ok = read_rows(ask, db, rows, e);

end:
    database_finalize(rows);
    buf_done(&match);
    return ok;
}

struct memory_ask *memory_list_start(struct store *store, struct loop *loop,
                                     const struct memory_query *query, memory_done_fn *done,
                                     void *ctx) {
    struct memory_ask *ask = store_memory_ask_new(done, ctx, run_list);
    assert(query->workspace.len && query->limit && query->limit <= MEMORY_LIST_MAX);
    ask->task.reads_only = true;
    ask->query = *query;
    keep_texts(ask);
    ask->task.search_of = ask->query.workspace;
    store_run(store, loop, &ask->task, ask);
    return ask;
}

bool memory_refused(const struct err *failed) {
    return searches_refused(failed);
}

/* --- the index of words ------------------------------------------------------------------- */

/* Removing words from the index needs the old text, so it must run before a change. */
#define ONE "WHERE workspace = ?1 AND category = ?2 AND key = ?3"
#define EVERY "WHERE workspace = ?1 AND key = ?3"
#define WORDS "id, 'w' || hex(workspace), CAST(key AS TEXT), CAST(content AS TEXT) FROM memory "
#define FORGET_WORDS                                                                           \
    "INSERT INTO memory_words(memory_words, rowid, place, key, content) SELECT "               \
    "'delete', " WORDS
#define LEARN_WORDS "INSERT INTO memory_words(rowid, place, key, content) SELECT " WORDS

static bool change(const struct memory_ask *ask, struct database *db, const char *sql,
                   struct err *e) {
    return database_run_with(db, sql,
                             VALUES(sql_bytes(ask->query.workspace),
                                    sql_bytes(ask->entry.category), sql_bytes(ask->entry.key)),
                             e);
}

/* --- the audit log ------------------------------------------------------------------------ */

/* Of a memory the log has a digest only, so that it can be forgotten. */
static bool audit_change(const struct memory_ask *ask, struct database *db,
                         struct str operation, size_t count, struct err *e) {
    const struct str texts[] = {ask->entry.category, ask->entry.key, ask->entry.content};
    uint8_t digest[AUDIT_HASH_BYTES];
    struct audit_record record = {
        .texts = {[AUDIT_DOMAIN] = STR_INIT("runtime.memory"),
                  [AUDIT_OPERATION] = operation,
                  [AUDIT_WORKSPACE] = ask->query.workspace,
                  [AUDIT_USER] = ask->by.user,
                  [AUDIT_CONTRACT] = ask->by.contract,
                  [AUDIT_DIGEST] = {(const char *)digest, sizeof(digest)}}};
    audit_digest(texts, ARRAY_LEN(texts), digest);
    audit_set(&record, AUDIT_COUNT, count);
    audit_set(&record, AUDIT_OUTCOME, count ? ERR_NONE : ERR_NOT_FOUND);
    return audit_note(db, &record, e);
}

static struct audit_actor cut_actor(struct audit_actor by) {
    return (struct audit_actor){str_head(by.contract, AUDIT_TEXT_MAX_BYTES),
                                str_head(by.user, AUDIT_TEXT_MAX_BYTES)};
}

/* --- put ---------------------------------------------------------------------------------- */

/* Later than all existing times of the workspace, even within the same microsecond or after the
 * clock was set back. Lists show the latest write first. */
#define LATER                                                                                  \
    "max(?5, 1 + coalesce((SELECT max(updated_us) FROM memory WHERE workspace = ?1), 0))"

static const char put_sql[] =
    "INSERT INTO memory(workspace, category, key, content, created_us, updated_us)"
    " SELECT ?1, ?2, ?3, ?4, later, later FROM (SELECT " LATER " AS later) WHERE true"
    " ON CONFLICT(workspace, key, category) DO UPDATE SET content = excluded.content,"
    " updated_us = excluded.updated_us"
    " RETURNING created_us, updated_us";

static const char put_postgres_sql[] =
    "INSERT INTO agent_memories(workspace_id, category, key, content, created_at, updated_at,"
    " words) SELECT " AS_TEXT("?1") ", " AS_TEXT("?2") ", " AS_TEXT("?3") ", " AS_TEXT(
        "?4") ", later, later, CAST(?6 AS tsvector) FROM (SELECT greatest(at, (SELECT "
              "max(updated_at) +"
              " interval '1 microsecond' FROM agent_memories WHERE workspace_id = " AS_TEXT(
                  "?1") "))"
                        " AS later FROM (SELECT timestamptz 'epoch' + ?5 * interval '1 "
                        "microsecond' AS at) AS now)"
                        " AS times ON CONFLICT(workspace_id, category, key) DO UPDATE SET"
                        " content = excluded.content, updated_at = excluded.updated_at, words "
                        "= excluded.words"
                        " RETURNING " MICROSECONDS("created_at") ", " MICROSECONDS(
                            "updated_at");

static bool write_entry(struct memory_ask *ask, struct database *db, struct err *e) {
    struct buf words;
    buf_init(&words, WORDS_LIST_MAX_BYTES);
    if (database_is_postgres(db) &&
        !words_vector(db, ask->entry.key, ask->entry.content, &words, e)) {
        buf_done(&words);
        return false;
    }
    struct memory_entry *stored = ARENA_NEW(ask->texts, struct memory_entry);
    assert(stored);
    /* SQLite's statement has no sixth value: binding it has no effect. */
    struct database_rows put =
        database_ask(db, database_sql(db, put_sql, put_postgres_sql),
                     VALUES(sql_bytes(ask->query.workspace), sql_bytes(ask->entry.category),
                            sql_bytes(ask->entry.key), sql_bytes(ask->entry.content),
                            sql_number(ask->entry.updated_us), sql_text(buf_str(&words))),
                     e);
    bool row = database_next(&put, e);
    assert(row || !put.ok);
    if (row) {
        *stored = ask->entry;
        stored->created_us = database_number_of(put.row, 0);
        stored->updated_us = database_number_of(put.row, 1);
        ask->answer = (struct memory_answer){.entries = stored, .count = 1};
        database_next(&put, e); /* run the statement to its end */
    }
    bool ok = database_end(&put);
    buf_done(&words);
    return ok;
}

/* In PostgreSQL's table the words are a column. */
static bool change_words(const struct memory_ask *ask, struct database *db, const char *sql,
                         struct err *e) {
    return database_is_postgres(db) || change(ask, db, sql, e);
}

static bool store_memory_run_put(struct database *db, void *ctx, struct err *e) {
    struct memory_ask *ask = ctx;
    begin_answer(ask, KIB);
    return change_words(ask, db, FORGET_WORDS ONE, e) && write_entry(ask, db, e) &&
           change_words(ask, db, LEARN_WORDS ONE, e) && audit_change(ask, db, STR("put"), 1, e);
}

struct memory_ask *memory_put_start(struct store *store, struct loop *loop,
                                    struct audit_actor by, struct str workspace,
                                    const struct memory_entry *entry, memory_done_fn *done,
                                    void *ctx) {
    struct memory_ask *ask = store_memory_ask_new(done, ctx, store_memory_run_put);
    assert(workspace.len && entry->key.len);
    ask->by = cut_actor(by);
    ask->query.workspace = workspace;
    ask->entry = *entry;
    ask->entry.updated_us = clock_unix_us();
    keep_texts(ask);
    store_run(store, loop, &ask->task, ask);
    return ask;
}

/* --- remove ------------------------------------------------------------------------------- */

static bool run_remove(struct database *db, void *ctx, struct err *e) {
    struct memory_ask *ask = ctx;
    begin_answer(ask, KIB);
    const char *remove =
        database_sql(db, "DELETE FROM memory " EVERY,
                     "DELETE FROM agent_memories WHERE workspace_id = " AS_TEXT(
                         "?1") " AND key = " AS_TEXT("?3"));
    if (!change_words(ask, db, FORGET_WORDS EVERY, e)) return false;
    if (!change(ask, db, remove, e)) return false;
    ask->answer.count = (size_t)database_changes(db);
    return audit_change(ask, db, STR("remove"), ask->answer.count, e);
}

struct memory_ask *memory_remove_start(struct store *store, struct loop *loop,
                                       struct audit_actor by, struct str workspace,
                                       struct str key, memory_done_fn *done, void *ctx) {
    struct memory_ask *ask = store_memory_ask_new(done, ctx, run_remove);
    assert(workspace.len && key.len);
    ask->by = cut_actor(by);
    ask->query.workspace = workspace;
    ask->entry.key = key;
    keep_texts(ask);
    store_run(store, loop, &ask->task, ask);
    return ask;
}
