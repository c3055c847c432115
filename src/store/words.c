#include "store/words.h"

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
    struct prepared *ask = NULL;
    bool row, ok = database_prepare(db, "SELECT fts5(?1)", &ask, e);
    *ret = NULL;
    if (ok) sqlite3_bind_pointer(ask->sqlite, 1, ret, "fts5_api_ptr", NULL);
    ok = ok && database_row(db, ask, &row, e);
    database_finalize(ask);
    if (!ok || *ret) return ok;
    return err_set(e, ERR_INTERNAL, "store %s: SQLite has no full-text search", db->path);
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
