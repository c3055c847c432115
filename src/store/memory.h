/* memory: what agents remember about a workspace.
 *
 * An entry is a text under a key, in a category: (workspace, category, key) names it. People
 * and agents read and change the same table, through whichever contract; every question names
 * its workspace, and no answer ever holds another one's entry.
 *
 *     put    stores an entry or replaces its content; when it was made stays. It is later than
 *            every change of the workspace before it, if only by a microsecond
 *     list   newest change first, or, with words, those that say them, best first
 *     remove takes a key out of every category of the workspace
 *
 * Asking starts a task of the store (task.h) and answers on the asker's loop.
 *
 * Memory   what is asked is copied. An answer is borrowed during the callback.
 * Threads  a loop asks and is answered; the rest happens on the store's thread.
 * Source   contracts/crawbl.md 1.3; checks.md K14, T8, M1; SQLite FTS5.
 */
#ifndef WEIR_STORE_MEMORY_H
#define WEIR_STORE_MEMORY_H

#include "base/units.h"
#include "store/store.h"

#define MEMORY_WORKSPACE_MAX_BYTES 1024
#define MEMORY_CATEGORY_MAX_BYTES 256
#define MEMORY_KEY_MAX_BYTES 256
#define MEMORY_CONTENT_MAX_BYTES (16 * KIB)
#define MEMORY_WORDS_MAX_BYTES 1024
#define MEMORY_LIST_COMMON 100 /* what a limit of 0 asks for */
#define MEMORY_LIST_MAX 1000

struct memory_entry {
    struct str category, key, content;
    int64_t created_us, updated_us; /* Unix time */
};

enum memory_match {
    MEMORY_ALL_WORDS, /* an entry must say every word */
    MEMORY_ANY_WORD,  /* one is enough; those that say more of them come first */
};

struct memory_query {
    struct str workspace;
    struct str category; /* empty: all */
    struct str words;    /* empty: every entry. No syntax: any text is words */
    enum memory_match match;
    size_t limit, offset;
    size_t max_bytes; /* of text in the answer, one entry always fits */
};

/* --- what may be asked -------------------------------------------------------------------- */

/* errors of all four  ERR_INVALID_ARGUMENT, in the words of the contract */
MUST_CHECK bool memory_check_workspace(struct str workspace, struct err *e);
MUST_CHECK bool memory_check_key(struct str key, struct err *e);
MUST_CHECK bool memory_check_entry(const struct memory_entry *entry, struct err *e);
MUST_CHECK bool memory_check_query(const struct memory_query *query, struct err *e);

/* Set limit and offset as a caller wrote them: 0 is MEMORY_LIST_COMMON, more than
 * MEMORY_LIST_MAX is that. ERR_INVALID_ARGUMENT: one is negative. */
MUST_CHECK bool memory_page(struct memory_query *query, int64_t limit, int64_t offset,
                            struct err *e);

/* --- asking ------------------------------------------------------------------------------- */

struct memory_answer {
    const struct memory_entry *entries; /* of a list; the one that was put */
    size_t count;                       /* of a remove: how many entries had the key */
    bool more;                          /* the list goes on behind the last of them */
    bool cut;                           /* and it stops here because of max_bytes */
};

/* Once, on `loop`, never before the start returns. failed is NULL on success, else
 * ERR_UNAVAILABLE (a full disk: nothing was changed; ask again later) or what the store has. */
typedef void memory_done_fn(const struct memory_answer *answer, const struct err *failed,
                            void *ctx);

/* On its way; gone when `done` has been called. */
struct memory_ask;

/* What is asked has passed the checks above. */
struct memory_ask *memory_list_start(struct store *store, struct loop *loop,
                                     const struct memory_query *query, memory_done_fn *done,
                                     void *ctx);
struct memory_ask *memory_put_start(struct store *store, struct loop *loop,
                                    struct str workspace, const struct memory_entry *entry,
                                    memory_done_fn *done, void *ctx);
struct memory_ask *memory_remove_start(struct store *store, struct loop *loop,
                                       struct str workspace, struct str key,
                                       memory_done_fn *done, void *ctx);

/* Nobody waits any more: `done` will not be called, and what is asked happens all the same.
 * NULL is fine. */
void memory_forget(struct memory_ask *ask);

#endif
