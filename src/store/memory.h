/* memory: what agents remember about a workspace.
 *
 * An entry is a text named by (workspace, category, key). People and agents read and change the
 * same table, through any contract. Every request names its workspace, and an answer never
 * holds another workspace's entries.
 *
 *     put    stores an entry, or replaces its content and keeps its creation time. Its change
 *            time is later than that of every earlier change in the workspace, by at least a
 *            microsecond
 *     list   newest change first; or, with words, the entries that contain them, best first
 *     remove removes a key from every category of the workspace
 *
 * A request starts a task of the store (task.h) and is answered on the caller's loop.
 *
 * Memory   requests are copied. An answer is borrowed during the callback.
 * Threads  requests and answers are on the caller's loop; the work is on the store's thread.
 * Source   contracts/crawbl.md 1.3; checks.md K14, T8, M1; SQLite FTS5.
 */
#ifndef WEIR_STORE_MEMORY_H
#define WEIR_STORE_MEMORY_H

#include "base/units.h"
#include "store/audit_record.h"
#include "store/store.h"

#define MEMORY_WORKSPACE_MAX_BYTES 1024
#define MEMORY_CATEGORY_MAX_BYTES 256
#define MEMORY_KEY_MAX_BYTES 256
#define MEMORY_CONTENT_MAX_BYTES (16 * KIB)
#define MEMORY_WORDS_MAX_BYTES 1024
#define MEMORY_LIST_COMMON 100 /* what a limit of 0 means */
#define MEMORY_LIST_MAX 1000

struct memory_entry {
    struct str category, key, content;
    int64_t created_us, updated_us; /* Unix time */
};

enum memory_match {
    MEMORY_ALL_WORDS, /* an entry must contain every word */
    MEMORY_ANY_WORD,  /* one is enough; entries with more of them come first */
};

struct memory_query {
    struct str workspace;
    struct str category; /* empty: all */
    struct str words;    /* empty: every entry. Plain words, no query syntax */
    enum memory_match match;
    size_t limit, offset;
    size_t max_bytes; /* of text in the answer; one entry always fits */
};

/* Whether it failed because too many searches of its workspace run or wait already. */
bool memory_refused(const struct err *failed);

/* --- checks ------------------------------------------------------------------------------- */

/* errors of all four  ERR_INVALID_ARGUMENT, in the words of the contract */
MUST_CHECK bool memory_check_workspace(struct str workspace, struct err *e);
MUST_CHECK bool memory_check_key(struct str key, struct err *e);
MUST_CHECK bool memory_check_entry(const struct memory_entry *entry, struct err *e);
MUST_CHECK bool memory_check_query(const struct memory_query *query, struct err *e);

/* Set limit and offset from a caller's request. A limit of 0 means MEMORY_LIST_COMMON; one
 * above MEMORY_LIST_MAX is lowered to it. ERR_INVALID_ARGUMENT: one is negative. */
MUST_CHECK bool memory_page(struct memory_query *query, int64_t limit, int64_t offset,
                            struct err *e);

/* --- requests ----------------------------------------------------------------------------- */

struct memory_answer {
    const struct memory_entry *entries; /* of a list; or the one that was put */
    size_t count; /* of `entries`; of a remove: how many entries had the key */
    bool more;    /* the list goes on after the last of them */
    bool cut;     /* it stops here because of max_bytes */
};

/* Called once, on `loop`, never before the start function returns. failed is NULL on success,
 * else ERR_UNAVAILABLE (a full disk: nothing changed; try again later) or another error of the
 * store. */
typedef void memory_done_fn(const struct memory_answer *answer, const struct err *failed,
                            void *ctx);

/* A request on its way; freed after `done` was called. */
struct memory_ask;

/* The arguments must have passed the checks above. A change is in the audit log, as `by`'s. */
struct memory_ask *memory_list_start(struct store *store, struct loop *loop,
                                     const struct memory_query *query, memory_done_fn *done,
                                     void *ctx);
struct memory_ask *memory_put_start(struct store *store, struct loop *loop,
                                    struct audit_actor by, struct str workspace,
                                    const struct memory_entry *entry, memory_done_fn *done,
                                    void *ctx);
struct memory_ask *memory_remove_start(struct store *store, struct loop *loop,
                                       struct audit_actor by, struct str workspace,
                                       struct str key, memory_done_fn *done, void *ctx);

/* Stop waiting: `done` will not be called. The request is still carried out. NULL is fine. */
void memory_forget(struct memory_ask *ask);

#endif
