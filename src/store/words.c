#include "store/words.h"

#include "base/utf8.h"

struct phrase {
    struct buf *out;
    size_t words;
    const char *between;
};

/* A token has only letters and digits, so it contains no quotation mark. */
static int add_word(void *ctx, int flags, const char *token, int len, int from, int to) {
    struct phrase *phrase = ctx;
    (void)flags, (void)from, (void)to;
    if (phrase->words == WORDS_MAX) return SQLITE_DONE;
    if (phrase->words++) buf_append(phrase->out, str_from(phrase->between));
    buf_append_byte(phrase->out, '"');
    buf_append(phrase->out, str_of(token, (size_t)len));
    buf_append_byte(phrase->out, '"');
    return SQLITE_OK;
}

bool words_api(struct database *db, fts5_api **ret, struct err *e) {
    sqlite3_stmt *ask = NULL;
    fts5_api *api = NULL;
    if (sqlite3_prepare_v2(db->handle, "SELECT fts5(?1)", -1, &ask, NULL) == SQLITE_OK &&
        sqlite3_bind_pointer(ask, 1, &api, "fts5_api_ptr", NULL) == SQLITE_OK)
        sqlite3_step(ask);
    bool no_memory = sqlite3_errcode(db->handle) == SQLITE_NOMEM;
    if (!api && no_memory) database_fail(db, e);
    if (!api && !no_memory)
        err_set(e, ERR_INTERNAL, "store %s: SQLite has no full-text search", db->path);
    sqlite3_finalize(ask);
    *ret = api;
    return api != NULL;
}

bool words_each(struct database *db, struct str text, words_fn *fn, void *ctx, struct err *e) {
    const char *settings[] = {"remove_diacritics", "2"};
    fts5_api *api;
    fts5_tokenizer kind;
    Fts5Tokenizer *tokenizer = NULL;
    void *kind_ctx;
    if (!words_api(db, &api, e)) return false;
    if (api->xFindTokenizer(api, "unicode61", &kind_ctx, &kind) != SQLITE_OK ||
        kind.xCreate(kind_ctx, settings, ARRAY_LEN(settings), &tokenizer) != SQLITE_OK)
        return err_set(e, ERR_INTERNAL, "store %s: SQLite has no full-text search", db->path);
    int result =
        kind.xTokenize(tokenizer, ctx, FTS5_TOKENIZE_QUERY, text.at, (int)text.len, fn);
    kind.xDelete(tokenizer);
    if (result == SQLITE_OK || result == SQLITE_DONE) return true;
    return err_set(e, ERR_UNAVAILABLE, "store %s: memory ran out while searching; try again",
                   db->path);
}

static void add_place(struct str workspace, struct buf *out) {
    static const char digits[] = "0123456789abcdef";
    buf_append(out, STR("place : \"w"));
    for (size_t i = 0; i < workspace.len; i++) {
        unsigned char byte = (unsigned char)workspace.at[i];
        buf_append_byte(out, digits[byte >> 4]);
        buf_append_byte(out, digits[byte & 15]);
    }
    buf_append_byte(out, '"');
}

bool words_query(struct database *db, const struct memory_query *query, struct buf *out,
                 bool *ret_any, struct err *e) {
    struct phrase phrase = {.out = out,
                            .between = query->match == MEMORY_ANY_WORD ? " OR " : " AND "};
    add_place(query->workspace, out);
    buf_append(out, STR(" AND {key content} : ("));
    if (!words_each(db, query->words, add_word, &phrase, e)) return false;
    buf_append_byte(out, ')');
    *ret_any = phrase.words > 0;
    if (buf_ok(out)) return true;
    return err_set(e, ERR_RESOURCE_EXHAUSTED, "memory: more words than can be looked for");
}

/* --- for PostgreSQL ------------------------------------------------------------------------- */

#define VECTOR_WORDS_MAX 16383 /* the highest position that a tsvector has */

struct str words_for_postgres(struct str word) {
    return str_head(word, utf8_cut(word, WORDS_POSTGRES_MAX_BYTES));
}

struct listing {
    struct buf *out;
    char weight; /* 0: a list */
    unsigned place;
};

static int list_word(void *ctx, int flags, const char *token, int len, int from, int to) {
    struct listing *listing = ctx;
    struct str word = words_for_postgres(str_of(token, (size_t)len));
    (void)flags, (void)from, (void)to;
    if (listing->out->len) buf_append_byte(listing->out, ' ');
    if (listing->weight == 0) return buf_append(listing->out, word) ? SQLITE_OK : SQLITE_FULL;
    if (listing->place < VECTOR_WORDS_MAX) listing->place++;
    bool ok = buf_printf(listing->out, "'" STR_FMT "':%u%c", STR_ARG(word), listing->place,
                         listing->weight);
    return ok ? SQLITE_OK : SQLITE_FULL;
}

bool words_list(struct database *db, struct str text, struct buf *ret, struct err *e) {
    struct listing listing = {.out = ret};
    return words_each(db, text, list_word, &listing, e);
}

bool words_vector(struct database *db, struct str key, struct str content, struct buf *ret,
                  struct err *e) {
    struct listing listing = {.out = ret, .weight = 'A'};
    if (!words_each(db, key, list_word, &listing, e)) return false;
    listing.weight = 'B';
    return words_each(db, content, list_word, &listing, e);
}

static int add_term(void *ctx, int flags, const char *token, int len, int from, int to) {
    struct phrase *phrase = ctx;
    struct str word = words_for_postgres(str_of(token, (size_t)len));
    (void)flags, (void)from, (void)to;
    if (phrase->words == WORDS_MAX) return SQLITE_DONE;
    if (phrase->words++) buf_append(phrase->out, str_from(phrase->between));
    buf_printf(phrase->out, "'" STR_FMT "'", STR_ARG(word));
    return SQLITE_OK;
}

bool words_tsquery(struct database *db, const struct memory_query *query, struct buf *out,
                   bool *ret_any, struct err *e) {
    struct phrase phrase = {.out = out,
                            .between = query->match == MEMORY_ANY_WORD ? " | " : " & "};
    if (!words_each(db, query->words, add_term, &phrase, e)) return false;
    *ret_any = phrase.words > 0;
    if (buf_ok(out)) return true;
    return err_set(e, ERR_RESOURCE_EXHAUSTED, "memory: more words than can be looked for");
}
