#include "tool/catalogue.h"

#include "base/nearest.h"
#include "tool/computed.h"
#include "tool/file_tool.h"
#include "tool/memory.h"
#include "tool/web_fetch.h"

/* ---- How a row is made ---- */

static bool needs_pool(const struct catalogue_options *options, struct err *e) {
    return options->pool ||
           err_set(e, ERR_FAILED_PRECONDITION, "this program may not ask other servers");
}

static bool make_web_fetch(const struct catalogue_row *row,
                           const struct catalogue_options *options, struct tool **ret,
                           struct err *e) {
    (void)row;
    if (!needs_pool(options, e)) return false;
    *ret = web_fetch_tool_new(options->pool);
    return true;
}

static bool make_web_search(const struct catalogue_row *row,
                            const struct catalogue_options *options, struct tool **ret,
                            struct err *e) {
    (void)row;
    struct web_search_options search = options->search;
    search.pool = options->pool;
    if (!needs_pool(options, e)) return false;
    if (!search.backend.len)
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "no search backend is set; name one (searxng or brave)");
    if (!web_search_check(&search, e)) return false;
    *ret = web_search_tool_new(&search);
    return true;
}

static bool make_computed(const struct catalogue_row *row,
                          const struct catalogue_options *options, struct tool **ret,
                          struct err *e) {
    (void)options;
    (void)e;
    *ret = computed_tool_new(row->what.computed);
    return true;
}

static bool in_bucket(const struct catalogue_options *options) {
    return !options->file_root.len && options->has_bucket &&
           (options->bucket || options->only_looked_at);
}

static bool needs_files(const struct catalogue_options *options, struct err *e) {
    return options->file_root.len || in_bucket(options) ||
           err_set(e, ERR_FAILED_PRECONDITION,
                   "no folder for files is set, and no object storage");
}

static bool make_file(const struct catalogue_row *row, const struct catalogue_options *options,
                      struct tool **ret, struct err *e) {
    if (!needs_files(options, e)) return false;
    if (!in_bucket(options))
        return file_tool_new_folder(row->what.file, options->file_root, ret, e);
    *ret = file_tool_new_bucket(row->what.file, options->bucket);
    return true;
}

static bool make_exec(const struct catalogue_row *row, const struct catalogue_options *options,
                      struct tool **ret, struct err *e) {
    (void)row;
    if (!options->exec.root.len)
        return err_set(
            e, ERR_FAILED_PRECONDITION,
            "no folder for its workspaces is set; write tools: {exec: {root: FOLDER}}");
    return exec_tool_new(&options->exec, ret, e);
}

static bool make_memory(const struct catalogue_row *row,
                        const struct catalogue_options *options, struct tool **ret,
                        struct err *e) {
    if (!options->store && !options->only_looked_at)
        return err_set(e, ERR_FAILED_PRECONDITION, "there is no store to keep memories in");
    *ret = memory_tool_new(row->what.memory, options->store);
    return true;
}

/* ---- The table ---- */

#define ROW(name, category, summary) STR_INIT(name), STR_INIT(category), STR_INIT(summary)

static const struct catalogue_row rows[] = {
    /* clang-format off */
    {ROW("web_fetch", "search", "Reads a public page as text."),
     true, make_web_fetch, true, false, {NULL}},
    {ROW("web_search_tool", "search", "Searches the web through the operator's search backend."),
     true, make_web_search, true, false, {NULL}},
    {ROW("file_read", "files", "Reads a file of the workspace."),
     true, make_file, false, false, {.file = &file_read_tool}},
    {ROW("file_write", "files", "Writes a file of the workspace, or replaces it."),
     true, make_file, false, false, {.file = &file_write_tool}},
    {ROW("exec", "code", "Runs a command in a sandbox."),
     false, make_exec, false, true, {NULL}},
    {ROW("memory_search", "memory", "Searches what is remembered of the workspace."),
     true, make_memory, false, false, {.memory = &memory_search_tool}},
    {ROW("memory_list", "memory", "Lists what is remembered of the workspace."),
     true, make_memory, false, false, {.memory = &memory_list_tool}},
    {ROW("memory_write", "memory", "Remembers something, or changes what is remembered."),
     true, make_memory, false, false, {.memory = &memory_write_tool}},
    {ROW("memory_delete", "memory", "Forgets what is remembered under a key."),
     false, make_memory, false, false, {.memory = &memory_delete_tool}},
    {ROW("calculator", "utility", "Works out an arithmetic expression exactly."),
     true, make_computed, false, false, {.computed = &calculator_tool}},
    {ROW("current_time", "utility", "Tells date and time in a time zone, now or at a moment."),
     true, make_computed, false, false, {.computed = &current_time_tool}},
    {ROW(STATE_WRITE_TOOL, "utility", "Changes the state of the application that a user works with."),
     true, make_computed, false, false, {.computed = &state_write_tool}},
    /* clang-format on */
};

const struct catalogue_row *catalogue_rows(size_t *ret_count) {
    *ret_count = ARRAY_LEN(rows);
    return rows;
}

const struct catalogue_row *catalogue_find(struct str name) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (str_equal(name, rows[i].name)) return &rows[i];
    }
    return NULL;
}

static bool unknown(struct str name, struct err *e) {
    struct nearest nearest;
    nearest_init(&nearest, name);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) nearest_offer(&nearest, rows[i].name);
    return err_set(e, ERR_NOT_FOUND, "no tool named '" STR_FMT "'%s",
                   STR_ARG(str_head(name, 64)), nearest_hint(&nearest));
}

bool catalogue_make(struct str name, const struct catalogue_options *options, struct tool **ret,
                    struct err *e) {
    const struct catalogue_row *row = catalogue_find(name);
    if (!row) return unknown(name, e);
    return row->make(row, options, ret, e) ||
           err_add(e, "tool '" STR_FMT "'", STR_ARG(row->name));
}
