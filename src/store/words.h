/* words: turn a user's search text into a query to the index of memories.
 *
 * The text is split by the same tokenizer as the stored entries. So any text is valid, and no
 * text can use the index's own query language.
 *
 *     "Kyōto, cheap!"  in workspace "ws"
 *     place : "w7773" AND {key content} : ("kyoto" AND "cheap")
 *
 * Memory   appended to the caller's buffer.
 * Threads  the store's.
 * Source   SQLite FTS5, "Full-text Query Syntax" and "Extending FTS5".
 */
#ifndef WEIR_STORE_WORDS_H
#define WEIR_STORE_WORDS_H

#include "base/buf.h"
#include "store/database.h"
#include "store/memory.h"

#define WORDS_MAX 32 /* the rest of a longer text is ignored */

/* *ret_any is false when the text holds no word: then nothing matches and `out` is unused.
 * errors  ERR_RESOURCE_EXHAUSTED the buffer's limit; those of SQLite */
MUST_CHECK bool words_query(struct database *db, const struct memory_query *query,
                            struct buf *out, bool *ret_any, struct err *e);

/* Called for each word; `token` is folded and need not end in NUL. Anything but SQLITE_OK ends
 * the walk; SQLITE_DONE ends it well. */
typedef int words_fn(void *ctx, int flags, const char *token, int len, int from, int to);

/* Split a text as the indexes of schema.c do: the tokenizer and settings of memory_words and
 * bank_words. */
MUST_CHECK bool words_each(struct database *db, struct str text, words_fn *fn, void *ctx,
                           struct err *e);

/* Indexes of PostgreSQL take no longer word: a tsvector has this limit, a GIN index one that is a
 * little higher. Of a longer word they have its beginning, and so has a question to them. */
#define WORDS_POSTGRES_MAX_BYTES 2046
struct str words_for_postgres(struct str word);

/* The words of a text, folded, with a space between two of them: what the indexes of
 * PostgreSQL's store are made of. */
#define WORDS_LIST_MAX_BYTES (4 * MIB)
MUST_CHECK bool words_list(struct database *db, struct str text, struct buf *ret,
                           struct err *e);

/* The words of a memory as a tsvector: those of the key count more. */
MUST_CHECK bool words_vector(struct database *db, struct str key, struct str content,
                             struct buf *ret, struct err *e);

/* words_query() as a tsquery. */
MUST_CHECK bool words_tsquery(struct database *db, const struct memory_query *query,
                              struct buf *out, bool *ret_any, struct err *e);

/* SQLite's own interface for extensions of full-text search. */
MUST_CHECK bool words_api(struct database *db, fts5_api **ret, struct err *e);

#endif
