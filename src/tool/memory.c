#include "tool/memory.h"

#include "base/log.h"
#include "base/mem.h"
#include "store/memory.h"
#include "tool/local.h"

#include <stdlib.h>
#include <time.h>

#define SEARCH_COMMON 5
#define LIST_COMMON 20
#define PAGE_MAX 50
#define ARGS_MAX_BYTES (256 * KIB) /* for unescaped text */

struct memory_tool {
    struct tool base;
    struct store *store;
    const struct memory_deed *deed;
};

struct tool_call {
    struct memory_tool *tool;
    struct loop *loop;
    struct memory_ask *ask; /* the open request to the store; NULL: none */
    struct task refused;    /* reports `why` when no request was sent */
    struct err why;
    tool_done_fn *done;
    void *ctx;
};

struct memory_deed {
    struct str name, description, parameters;
    bool idempotent;
    /* Send the request to the store, which copies it. */
    bool (*start)(struct tool_call *call, const struct tool_request *request, struct json args,
                  struct arena *arena, struct err *e);
    /* Write the members of the result. */
    bool (*write)(const struct memory_answer *answer, struct json_writer *json, struct err *e);
};

/* --- answers ------------------------------------------------------------------------------ */

static void memory_call_free(struct tool_call *call) {
    memory_forget(call->ask);
    task_cancel(&call->refused);
    free(call);
}

/* Reporting the answer frees the call, so the answer must not be part of it. */
static void tool_memory_report(struct tool_call *call, const struct buf *result,
                               const struct err *failed) {
    tool_done_fn *done = call->done;
    void *ctx = call->ctx;
    call->ask = NULL;
    memory_call_free(call);
    done(result ? buf_str(result) : STR_EMPTY, failed, ctx);
}

static void report_refused(void *ctx) {
    struct tool_call *call = ctx;
    struct err why = call->why;
    tool_memory_report(call, NULL, &why);
}

/* The store's messages name files, so they are for the operator and not for the model. */
static void report_failed(struct tool_call *call, const struct err *failed) {
    struct err why;
    log_often(LOG_WARNING, "memory: %s", failed->text);
    err_set(&why, failed->code, "memories cannot be reached now; try again later");
    tool_memory_report(call, NULL, &why);
}

static void on_answer(const struct memory_answer *answer, const struct err *failed, void *ctx) {
    struct tool_call *call = ctx;
    struct err why;
    struct buf result;
    if (failed) {
        report_failed(call, failed);
        return;
    }
    buf_init(&result, LOCAL_RESULT_MAX_BYTES);
    struct json_writer json = json_writer(&result);
    json_open_object(&json);
    bool written = call->tool->deed->write(answer, &json, &why);
    json_close(&json);
    written = written && local_result(&result, &why);
    tool_memory_report(call, written ? &result : NULL, written ? NULL : &why);
    buf_done(&result);
}

static void memory_write_entry(struct json_writer *json, const struct memory_entry *entry,
                               struct str content) {
    char when[sizeof("1970-01-01T00:00:00Z")];
    time_t seconds = (time_t)(entry->updated_us / 1000000);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    size_t len = strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_open_object(json);
    json_member_str(json, "key", entry->key);
    json_member_str(json, "content", content);
    json_member_bool(json, "content_is_cut", content.len < entry->content.len);
    json_member_str(json, "category", entry->category);
    json_member_str(json, "updated_at", str_of(when, len));
    json_close(json);
}

/* --- memory_search and memory_list -------------------------------------------------------- */

/* Limit for each entry's text, so that all entries fit; longer texts are cut. */
static size_t content_max_bytes(size_t count) {
    size_t names = 6 * (MEMORY_KEY_MAX_BYTES + MEMORY_CATEGORY_MAX_BYTES); /* escaped */
    size_t fair = (LOCAL_RESULT_MAX_BYTES - KIB) / (count ? count : 1);
    return fair > names + KIB ? fair - names : fair / 2;
}

static bool write_listed(const struct memory_answer *answer, struct json_writer *json,
                         struct err *e) {
    size_t written = 0, content_max = content_max_bytes(answer->count);
    (void)e;
    json_member_array(json, "memories");
    while (written < answer->count) {
        const struct memory_entry *entry = &answer->entries[written];
        struct buf one;
        buf_init(&one, LOCAL_RESULT_MAX_BYTES);
        struct json_writer aside = json_writer(&one);
        memory_write_entry(&aside, entry, local_fit(entry->content, content_max));
        bool fits = json->out->len + one.len + 64 < LOCAL_RESULT_MAX_BYTES;
        if (fits) json_write_raw(json, buf_str(&one));
        buf_done(&one);
        if (!fits) break;
        written++;
    }
    json_close(json);
    json_member_bool(json, "more", answer->more || written < answer->count);
    return true;
}

static bool memory_text_of(struct json args, struct str name, struct arena *arena,
                           struct str absent, struct str *ret, struct err *e) {
    struct json member = json_find(args, name);
    *ret = absent;
    if (json_is_absent(member)) return true;
    if (member.kind != JSON_STRING)
        return err_set(e, ERR_INVALID_ARGUMENT, STR_FMT " must be a string, not %s",
                       STR_ARG(name), json_kind_name(member.kind));
    return json_str(member, arena, ret) ||
           err_set(e, ERR_TOO_LARGE, STR_FMT " is too long", STR_ARG(name));
}

static bool ask_list(struct tool_call *call, struct memory_query *query, struct err *e) {
    query->max_bytes = 16 * LOCAL_RESULT_MAX_BYTES;
    if (!memory_check_query(query, e)) return false;
    call->ask = memory_list_start(call->tool->store, call->loop, query, on_answer, call);
    return true;
}

static bool start_search(struct tool_call *call, const struct tool_request *request,
                         struct json args, struct arena *arena, struct err *e) {
    struct memory_query query = {.workspace = request->workspace, .match = MEMORY_ANY_WORD};
    if (!memory_text_of(args, STR("query"), arena, STR_EMPTY, &query.words, e) ||
        !memory_text_of(args, STR("category"), arena, STR_EMPTY, &query.category, e))
        return false;
    query.words = str_trim(query.words);
    if (query.words.len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "query is required: some words to look for; memory_list shows all");
    query.limit = local_number(args, STR("limit"), 1, PAGE_MAX, SEARCH_COMMON);
    return ask_list(call, &query, e);
}

static bool start_list(struct tool_call *call, const struct tool_request *request,
                       struct json args, struct arena *arena, struct err *e) {
    struct memory_query query = {.workspace = request->workspace};
    if (!memory_text_of(args, STR("category"), arena, STR_EMPTY, &query.category, e))
        return false;
    query.limit = local_number(args, STR("limit"), 1, PAGE_MAX, LIST_COMMON);
    query.offset = local_number(args, STR("offset"), 0, INT32_MAX, 0);
    return ask_list(call, &query, e);
}

/* --- memory_write ------------------------------------------------------------------------- */

static bool write_written(const struct memory_answer *answer, struct json_writer *json,
                          struct err *e) {
    const struct memory_entry *entry = &answer->entries[0];
    (void)e;
    json_key(json, STR("memory"));
    memory_write_entry(json, entry, local_fit(entry->content, content_max_bytes(1)));
    return true;
}

/* For the audit log: the turn's user, by an agent's tool. */
static struct audit_actor actor_of(const struct tool_request *request) {
    return (struct audit_actor){STR("agent"), request->user};
}

static bool start_write(struct tool_call *call, const struct tool_request *request,
                        struct json args, struct arena *arena, struct err *e) {
    struct memory_entry entry = {0};
    if (!memory_text_of(args, STR("key"), arena, STR_EMPTY, &entry.key, e) ||
        !memory_text_of(args, STR("content"), arena, STR_EMPTY, &entry.content, e) ||
        !memory_text_of(args, STR("category"), arena, STR("core"), &entry.category, e) ||
        !memory_check_entry(&entry, e))
        return false;
    call->ask = memory_put_start(call->tool->store, call->loop, actor_of(request),
                                 request->workspace, &entry, on_answer, call);
    return true;
}

/* --- memory_delete ------------------------------------------------------------------------ */

static bool write_deleted(const struct memory_answer *answer, struct json_writer *json,
                          struct err *e) {
    if (answer->count == 0)
        return err_set(e, ERR_NOT_FOUND,
                       "there is no memory with this key; memory_list shows all");
    json_member_u64(json, "deleted", answer->count);
    return true;
}

static bool start_delete(struct tool_call *call, const struct tool_request *request,
                         struct json args, struct arena *arena, struct err *e) {
    struct str key;
    if (!memory_text_of(args, STR("key"), arena, STR_EMPTY, &key, e) ||
        !memory_check_key(key, e))
        return false;
    call->ask = memory_remove_start(call->tool->store, call->loop, actor_of(request),
                                    request->workspace, key, on_answer, call);
    return true;
}

/* --- the tools ---------------------------------------------------------------------------- */

#define OBJECT "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
#define TEXT(name, most, says)                                                                 \
    "\"" name "\":{\"type\":\"string\",\"maxLength\":" most ",\"description\":\"" says "\"},"
#define NUMBER(name, least, most, says)                                                        \
    "\"" name "\":{\"type\":\"integer\",\"minimum\":" least ",\"maximum\":" most               \
    ",\"description\":\"" says "\"},"
#define CATEGORY "Only this category, such as core, daily or conversation; without it, all."

const struct memory_deed memory_search_tool = {
    .name = STR_INIT("memory_search"),
    .description = STR_INIT("Look for what is remembered about this workspace. Entries that "
                            "hold more of the words, "
                            "and rarer ones, come first."),
    .parameters =
        STR_INIT(OBJECT TEXT("query", "1024", "Words to look for; any of them is enough.")
                     TEXT("category", "256", CATEGORY)
                         NUMBER("limit", "1", "50", "At most so many entries; 5 without it.")
                             LOCAL_DESCRIPTION "},\"required\":[\"query\"]}"),
    .idempotent = true,
    .start = start_search,
    .write = write_listed,
};

const struct memory_deed memory_list_tool = {
    .name = STR_INIT("memory_list"),
    .description =
        STR_INIT("List what is remembered about this workspace, newest change first."),
    .parameters = STR_INIT(OBJECT TEXT("category", "256", CATEGORY) NUMBER(
        "limit", "1", "50", "At most so many entries; 20 without it.")
                               NUMBER("offset", "0", "2147483647", "Leave out so many first.")
                                   LOCAL_DESCRIPTION "}}"),
    .idempotent = true,
    .start = start_list,
    .write = write_listed,
};

const struct memory_deed memory_write_tool = {
    .name = STR_INIT("memory_write"),
    .description = STR_INIT("Remember something about this workspace for later conversations. "
                            "An entry with the same key and category is replaced."),
    .parameters = STR_INIT(
        OBJECT TEXT("key", "256", "A short name to find it by, such as favourite_airline.")
            TEXT("content", "16384", "What to remember.")
                TEXT("category", "256", "core, daily or conversation; core without it.")
                    LOCAL_DESCRIPTION "},\"required\":[\"key\",\"content\"]}"),
    .idempotent = true,
    .start = start_write,
    .write = write_written,
};

/* Not idempotent: a second time it would find nothing and report that. */
const struct memory_deed memory_delete_tool = {
    .name = STR_INIT("memory_delete"),
    .description = STR_INIT("Forget a key of this workspace, in every category that has it."),
    .parameters = STR_INIT(OBJECT TEXT("key", "256", "The key of the entry.") LOCAL_DESCRIPTION
                           "},\"required\":[\"key\"]}"),
    .start = start_delete,
    .write = write_deleted,
};

static struct tool_call *memory_start(struct tool *tool, struct loop *loop,
                                      const struct tool_request *request, tool_done_fn *done,
                                      void *ctx) {
    struct tool_call *call = MEM_NEW(struct tool_call);
    struct arena *arena = arena_new(ARGS_MAX_BYTES);
    struct json args;
    call->tool = CONTAINER_OF(tool, struct memory_tool, base);
    call->loop = loop;
    call->done = done;
    call->ctx = ctx;
    task_init(&call->refused, report_refused, call);
    bool asked = local_args(request->args, &args, &call->why) &&
                 memory_check_workspace(request->workspace, &call->why) &&
                 call->tool->deed->start(call, request, args, arena, &call->why);
    if (!asked) loop_defer(loop, &call->refused);
    arena_free(arena);
    return call;
}

static const struct tool_kind memory_kind = {
    .name = "memory",
    .start = memory_start,
    .cancel = memory_call_free,
    .free = local_tool_free,
};

struct tool *memory_tool_new(const struct memory_deed *deed, struct store *store) {
    struct memory_tool *tool = MEM_NEW(struct memory_tool);
    tool->base = (struct tool){.kind = &memory_kind,
                               .name = deed->name,
                               .description = deed->description,
                               .parameters = deed->parameters,
                               .idempotent = deed->idempotent};
    tool->store = store;
    tool->deed = deed;
    local_tool_init(&tool->base);
    return &tool->base;
}
