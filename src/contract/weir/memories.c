/* memories: list, search, change and remove what agents remember of a workspace. */
#include "base/mem.h"
#include "contract/weir/inner.h"
#include "store/memory.h"
#include "wire/json.h"

#include <stdlib.h>

#define VALUE_MAX_BYTES (16 * KIB) /* of one query parameter */
#define LIST_MAX_BYTES (4 * MIB)
#define BODY_MAX_BYTES (32 * MIB) /* every byte escaped, and the names */

/* An open request to the store. */
struct memory_wait {
    struct route_call *call;
    struct memory_ask *ask;
};

/* --- the request -------------------------------------------------------------------------- */

/* The workspace of the memories, and whether the caller may see it. */
static bool take_workspace(struct api_request *request, struct str *ret) {
    struct err e;
    const struct api_caller *caller = &request->caller;
    struct str own = caller->all_workspaces ? STR("default") : api_workspace(caller);
    if (!api_request_value(request, STR("workspace"), ret)) return false;
    if (ret->len == 0) *ret = own;
    if (!caller->all_workspaces && !str_equal(*ret, own)) {
        route_refuse(request->call, 403, STR("FORBIDDEN"),
                     "these memories belong to another workspace");
        return false;
    }
    return memory_check_workspace(*ret, &e) || api_request_refuse(request, 422, "%s", e.text);
}

/* Read the parts that all requests share. True: continue, and end with arena_free(). */
static bool memories_begin(struct api_request *request, struct route_call *call,
                           struct api_instance *instance, const char *const *names,
                           struct str *ret_workspace) {
    if (!api_request_begin(request, call, instance, names)) return false;
    if (take_workspace(request, ret_workspace)) return true;
    arena_free(request->arena);
    return false;
}

/* --- answers ------------------------------------------------------------------------------ */

static void wait_over(void *ctx) {
    struct memory_wait *wait = ctx;
    memory_forget(wait->ask);
    free(wait);
}

static const struct route_watch watch = {.left = wait_over, .closed = wait_over};

static struct memory_wait *wait_new(struct route_call *call) {
    struct memory_wait *wait = MEM_NEW(struct memory_wait);
    *wait = (struct memory_wait){.call = call};
    route_watch(call, &watch, wait);
    return wait;
}

/* The store has answered. Returns the call, or NULL when a failure was sent. */
static struct route_call *wait_end(struct memory_wait *wait, const struct err *failed) {
    wait->ask = NULL;
    if (!failed) return wait->call;
    api_refuse_store(wait->call, "memory", failed);
    return NULL;
}

static void write_entry(struct json_writer *json, const struct memory_entry *entry) {
    json_open_object(json);
    json_member_str(json, "key", entry->key);
    json_member_str(json, "content", entry->content);
    json_member_str(json, "category", entry->category);
    json_member_i64(json, "created_unix_ms", entry->created_us / 1000);
    json_member_i64(json, "updated_unix_ms", entry->updated_us / 1000);
    json_close(json);
}

/* --- GET /weir/v1/memories ---------------------------------------------------------------- */

static void memories_on_listed(const struct memory_answer *answer, const struct err *failed,
                               void *ctx) {
    struct route_call *call = wait_end(ctx, failed);
    struct route_json reply;
    if (!call) return;
    struct json_writer *json = route_json_object(&reply, BODY_MAX_BYTES);
    json_member_array(json, "memories");
    for (size_t i = 0; i < answer->count; i++) write_entry(json, &answer->entries[i]);
    json_close(json);
    json_member_bool(json, "more", answer->more);
    route_json_reply(&reply, call, 200);
}

static bool take_query(struct api_request *request, struct str workspace,
                       struct memory_query *ret) {
    struct err e;
    int64_t limit, offset;
    *ret = (struct memory_query){.workspace = workspace, .max_bytes = LIST_MAX_BYTES};
    if (!api_request_value(request, STR("category"), &ret->category) ||
        !api_request_value(request, STR("q"), &ret->words) ||
        !api_request_number(request, STR("limit"), &limit) ||
        !api_request_number(request, STR("offset"), &offset))
        return false;
    return (memory_page(ret, limit, offset, &e) && memory_check_query(ret, &e)) ||
           api_request_refuse(request, 422, "%s", e.text);
}

void api_list_memories(struct route_call *call, void *ctx) {
    static const char *const names[] = {"workspace", "category", "q", "limit", "offset", NULL};
    struct api_instance *instance = ctx;
    struct api_request request;
    struct memory_query query;
    struct str workspace;
    if (!memories_begin(&request, call, instance, names, &workspace)) return;
    if (take_query(&request, workspace, &query)) {
        struct memory_wait *wait = wait_new(call);
        wait->ask = memory_list_start(instance->store, instance->loop, &query,
                                      memories_on_listed, wait);
    }
    arena_free(request.arena);
}

/* --- POST /weir/v1/memories --------------------------------------------------------------- */

static void memories_on_put(const struct memory_answer *answer, const struct err *failed,
                            void *ctx) {
    struct route_call *call = wait_end(ctx, failed);
    struct route_json reply;
    if (!call) return;
    struct json_writer *json = route_json_object(&reply, BODY_MAX_BYTES);
    json_key(json, STR("memory"));
    write_entry(json, &answer->entries[0]);
    route_json_reply(&reply, call, 200);
}

static const char *const entry_keys[] = {"key", "content", "category", NULL};

static bool take_entry(struct api_request *request, struct memory_entry *ret) {
    struct json body;
    struct err e;
    *ret = (struct memory_entry){.created_us = 0};
    if (!json_read(lent_read(route_body(request->call)), &body, &e))
        return api_request_refuse(request, 400, "%s", e.text);
    if (!api_request_members(request, body, entry_keys)) return false;
    if (body.kind != JSON_OBJECT || json_find(body, STR("key")).kind == JSON_NONE)
        return api_request_refuse(request, 400,
                                  "send an object with key, content and category");
    if (!api_request_text(request, body, STR("key"), &ret->key) ||
        !api_request_text(request, body, STR("content"), &ret->content) ||
        !api_request_text(request, body, STR("category"), &ret->category))
        return false;
    return memory_check_entry(ret, &e) || api_request_refuse(request, 422, "%s", e.text);
}

static const char *const workspace_alone[] = {"workspace", NULL};

void api_put_memory(struct route_call *call, void *ctx) {
    struct api_instance *instance = ctx;
    struct api_request request;
    struct memory_entry entry;
    struct str workspace;
    if (!memories_begin(&request, call, instance, workspace_alone, &workspace)) return;
    if (take_entry(&request, &entry)) {
        struct memory_wait *wait = wait_new(call);
        wait->ask =
            memory_put_start(instance->store, instance->loop, api_actor(&request.caller),
                             workspace, &entry, memories_on_put, wait);
    }
    arena_free(request.arena);
}

/* --- DELETE /weir/v1/memories/{key} ------------------------------------------------------- */

static void on_removed(const struct memory_answer *answer, const struct err *failed,
                       void *ctx) {
    struct route_call *call = wait_end(ctx, failed);
    struct route_json reply;
    if (!call) return;
    if (answer->count == 0) {
        route_refuse(call, 404, STR("MEMORY_NOT_FOUND"), "there is no memory with this key");
        return;
    }
    struct json_writer *json = route_json_object(&reply, KIB);
    json_member_u64(json, "deleted", answer->count);
    route_json_reply(&reply, call, 200);
}

static bool take_key(struct api_request *request, struct str *ret) {
    struct buf key;
    struct err e;
    buf_init(&key, VALUE_MAX_BYTES);
    bool ok = route_parameter_text(request->call, STR("key"), &key) &&
              arena_str(request->arena, buf_str(&key), ret);
    buf_done(&key);
    if (!ok)
        return api_request_refuse(request, 400,
                                  "the key in the path is not valid text, or too long");
    return memory_check_key(*ret, &e) || api_request_refuse(request, 422, "%s", e.text);
}

void api_remove_memory(struct route_call *call, void *ctx) {
    struct api_instance *instance = ctx;
    struct api_request request;
    struct str key = STR_EMPTY;
    struct str workspace;
    if (!memories_begin(&request, call, instance, workspace_alone, &workspace)) return;
    if (take_key(&request, &key)) {
        struct memory_wait *wait = wait_new(call);
        wait->ask =
            memory_remove_start(instance->store, instance->loop, api_actor(&request.caller),
                                workspace, key, on_removed, wait);
    }
    arena_free(request.arena);
}
