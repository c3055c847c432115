/* catalogue: the tools that this program brings itself.
 *
 * One row each. An agent names the tools it may use; the configuration makes those, once for
 * all loops, with what the operator has set. A tool whose settings are missing is told apart
 * from one that does not exist, so that the error can name the fix.
 *
 * Memory   a tool made here is owned by the caller: tool_free(). Options are borrowed during
 *          the call, but for the pool and the store, which must outlive the tools.
 * Threads  the rows are constant; making a tool belongs to the start.
 */
#ifndef WEIR_TOOL_CATALOGUE_H
#define WEIR_TOOL_CATALOGUE_H

#include "store/store.h"
#include "tool/tool.h"
#include "tool/web_search.h"

/* What the operator has set. Zero is "nothing": tools that need it cannot be made. */
struct catalogue_options {
    struct http_pool *pool;           /* for every tool that asks other servers */
    struct web_search_options search; /* its pool is taken from above; backend empty: none */
    struct str file_root;             /* the folder of all workspaces' files; empty: none */
    struct store *store;              /* where memories are; NULL: nowhere */
    bool only_looked_at; /* no tool will be called: what is not there yet is not missed */
};

struct catalogue_row {
    struct str name;
    struct str category; /* search files memory utility ... */
    struct str summary;  /* one sentence for a person */
    bool idempotent;     /* safe to repeat; the same as the tool's own */

    /* ERR_FAILED_PRECONDITION a setting is missing, ERR_INVALID_ARGUMENT one is wrong */
    bool (*make)(const struct catalogue_options *options, struct tool **ret, struct err *e);
    bool asks; /* other servers: http_pool_need() first */
};

/* All rows, in the order they are shown. */
const struct catalogue_row *catalogue_rows(size_t *ret_count);

/* NULL when no tool has this name. */
const struct catalogue_row *catalogue_find(struct str name);

/* Make the tool `name`.
 * errors  ERR_NOT_FOUND no such tool, with the nearest name; what its row's make() says */
MUST_CHECK bool catalogue_make(struct str name, const struct catalogue_options *options,
                               struct tool **ret, struct err *e);

#endif
