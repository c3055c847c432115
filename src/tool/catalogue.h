/* catalogue: the built-in tools.
 *
 * One row per tool. An agent names the tools it may use; the configuration creates them from
 * the operator's settings, once for all loops. A tool with missing settings is distinguished
 * from an unknown tool, so that the error can name the fix.
 *
 * Memory   the caller owns a new tool and ends it with tool_free(). Options are borrowed during
 *          the call, except the pool and the store, which must outlive the tools.
 * Threads  the rows are constant; tools are created at start.
 */
#ifndef WEIR_TOOL_CATALOGUE_H
#define WEIR_TOOL_CATALOGUE_H

#include "store/store.h"
#include "tool/exec.h"
#include "tool/tool.h"
#include "tool/web_search.h"

/* The operator's settings. Zero means not set: tools that need the setting are unavailable. */
struct catalogue_options {
    struct http_pool *pool;           /* for every tool that sends requests */
    struct web_search_options search; /* its pool is taken from above; backend empty: none */
    struct str file_root;             /* directory of all workspaces' files; empty: none */
    bool has_bucket;                  /* files are in a bucket, unless there is a directory */
    struct bucket *bucket;            /* NULL without one, or if only looked at */
    struct exec_options exec;         /* its root empty: none */
    struct store *store;              /* holds the memories; NULL: none */
    bool only_looked_at; /* no tool will be called: resources may still be missing */
};

struct catalogue_row {
    struct str name;
    struct str category; /* search files memory utility ... */
    struct str summary;  /* one sentence for a person */
    bool idempotent;     /* safe to repeat; same value as in the tool */

    /* errors  ERR_FAILED_PRECONDITION a setting is missing; ERR_INVALID_ARGUMENT it is wrong;
     *         ERR_UNIMPLEMENTED this machine cannot do it: the tool is off */
    bool (*make)(const struct catalogue_row *row, const struct catalogue_options *options,
                 struct tool **ret, struct err *e);
    bool asks;    /* sends requests to other servers: call http_pool_need() first */
    bool guarded; /* a human decides about each call; same value as tool->asks */

    union { /* what to make, where several rows share a `make` */
        const struct computed *computed;
        const struct file_tool_kind *file;
        const struct memory_deed *memory;
    } what;
};

/* All rows, in the order they are shown. */
const struct catalogue_row *catalogue_rows(size_t *ret_count);

/* NULL when no tool has this name. */
const struct catalogue_row *catalogue_find(struct str name);

/* Make the tool `name`.
 * errors  ERR_NOT_FOUND no such tool, with the closest name; those of its row's make() */
MUST_CHECK bool catalogue_make(struct str name, const struct catalogue_options *options,
                               struct tool **ret, struct err *e);

#endif
