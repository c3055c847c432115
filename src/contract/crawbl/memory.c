#include "contract/crawbl/memory.h"

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "proto/memory.pb.h"
#include "store/memory.h"

#include <stdlib.h>

#define SERVICE "crawbl.agentruntime.v1.Memory"

/* Clients accept 4 MiB; the margin is for the tags, lengths and times of a thousand entries. */
#define LIST_MAX_BYTES (4 * MIB - 128 * KIB)

/* One open call. */
struct memory_call {
    struct rpc_call *call;
    struct memory_instance *instance;
    struct memory_ask *ask; /* the open request to the store; NULL: none */
};

/* --- endings ------------------------------------------------------------------------------ */

/* The store has answered. False: it has failed, and the call has ended. Its messages name files, so they
 * are for the operator only. */
static bool is_done(struct memory_call *memory, const struct err *failed) {
    memory->ask = NULL;
    if (!failed) return true;
    log_often(LOG_WARNING, "memory: %s", failed->text);
    bool later = err_kinds[failed->code].grpc_status == err_kinds[ERR_UNAVAILABLE].grpc_status;
    rpc_end(memory->call, later ? ERR_UNAVAILABLE : ERR_INTERNAL,
            STR("memory: the store cannot do that now; try again later"));
    return false;
}

static void memory_reply(struct memory_call *memory, const struct pb_message *type,
                         const void *message) {
    pb_encode(type, message, rpc_message_begin(memory->call));
    rpc_message_end(memory->call);
    rpc_end(memory->call, ERR_NONE, STR_EMPTY);
}

/* --- entries ------------------------------------------------------------------------------ */

static struct google_timestamp timestamp(int64_t unix_us) {
    return (struct google_timestamp){.seconds = unix_us / 1000000,
                                     .nanos = (int32_t)(unix_us % 1000000) * 1000};
}

static struct crawbl_memory_entry entry_of(const struct memory_entry *entry,
                                           struct google_timestamp times[static 2]) {
    times[0] = timestamp(entry->created_us);
    times[1] = timestamp(entry->updated_us);
    return (struct crawbl_memory_entry){.key = entry->key,
                                        .content = entry->content,
                                        .category = entry->category,
                                        .created_at = &times[0],
                                        .updated_at = &times[1]};
}

/* --- the workspace ------------------------------------------------------------------------ */

/* The workspace of a request is the token's; another one in the request is an error (K8). */
static bool workspace_for(const struct memory_call *memory, struct str asked, struct str *ret,
                          struct err *e) {
    const struct crawbl_guard *guard = &memory->instance->settings->guard;
    const struct rpc_identity *token = rpc_identity(memory->call);
    struct str own = token->known ? token->workspace : guard->workspace;
    if (asked.len && own.len && !str_equal(asked, own))
        return err_set(e, ERR_PERMISSION_DENIED,
                       "memory: workspace_id names another workspace than the caller's");
    if (asked.len == 0 && !memory->instance->settings->lenient) own = STR_EMPTY; /* K36 */
    *ret = asked.len ? asked : own;
    return memory_check_workspace(*ret, e) && id_check("memory: workspace_id", *ret, e);
}

/* For the audit log. */
static struct audit_actor actor_of(const struct memory_call *memory) {
    return (struct audit_actor){STR("crawbl"), rpc_identity(memory->call)->user};
}

/* --- ListMemories ------------------------------------------------------------------------- */

static void crawbl_memory_on_listed(const struct memory_answer *answer,
                                    const struct err *failed, void *ctx) {
    struct memory_call *memory = ctx;
    if (!is_done(memory, failed)) return;
    if (answer->cut) {
        rpc_end(memory->call, ERR_RESOURCE_EXHAUSTED,
                STR("memory: these entries are more than 4 MiB; ask with a smaller limit"));
        return;
    }
    struct crawbl_memory_entry *entries = mem_zero(answer->count + 1, sizeof(*entries));
    struct google_timestamp *times = mem_zero(2 * answer->count + 1, sizeof(*times));
    for (size_t i = 0; i < answer->count; i++)
        entries[i] = entry_of(&answer->entries[i], &times[2 * i]);
    struct crawbl_list_memories_response response = {.entries = entries,
                                                     .entries_count = answer->count};
    memory_reply(memory, &crawbl_list_memories_response_table, &response);
    free(times);
    free(entries);
}

static bool start_list(struct memory_call *memory, const void *message, struct err *e) {
    const struct crawbl_list_memories_request *request = message;
    struct memory_query query = {.category = request->category, .max_bytes = LIST_MAX_BYTES};
    if (!workspace_for(memory, request->workspace_id, &query.workspace, e) ||
        !memory_page(&query, request->limit, request->offset, e) ||
        !memory_check_query(&query, e))
        return false;
    memory->ask = memory_list_start(memory->instance->store, rpc_loop(memory->call), &query,
                                    crawbl_memory_on_listed, memory);
    return true;
}

/* --- CreateMemory ------------------------------------------------------------------------- */

static void crawbl_memory_on_put(const struct memory_answer *answer, const struct err *failed,
                                 void *ctx) {
    struct memory_call *memory = ctx;
    if (!is_done(memory, failed)) return;
    struct google_timestamp times[2];
    struct crawbl_memory_entry entry = entry_of(&answer->entries[0], times);
    struct crawbl_create_memory_response response = {.entry = &entry};
    memory_reply(memory, &crawbl_create_memory_response_table, &response);
}

static bool start_create(struct memory_call *memory, const void *message, struct err *e) {
    const struct crawbl_create_memory_request *request = message;
    struct str workspace = STR_EMPTY;
    struct memory_entry entry = {
        .category = request->category, .key = request->key, .content = request->content};
    if (!workspace_for(memory, request->workspace_id, &workspace, e) ||
        !memory_check_entry(&entry, e))
        return false;
    memory->ask =
        memory_put_start(memory->instance->store, rpc_loop(memory->call), actor_of(memory),
                         workspace, &entry, crawbl_memory_on_put, memory);
    return true;
}

/* --- DeleteMemory ------------------------------------------------------------------------- */

static void on_removed(const struct memory_answer *answer, const struct err *failed,
                       void *ctx) {
    struct memory_call *memory = ctx;
    if (!is_done(memory, failed)) return;
    if (answer->count == 0) {
        rpc_end(memory->call, ERR_NOT_FOUND, STR("memory: entry not found"));
        return;
    }
    struct crawbl_delete_memory_response response = {0};
    memory_reply(memory, &crawbl_delete_memory_response_table, &response);
}

static bool start_delete(struct memory_call *memory, const void *message, struct err *e) {
    const struct crawbl_delete_memory_request *request = message;
    struct str workspace = STR_EMPTY;
    if (!workspace_for(memory, request->workspace_id, &workspace, e) ||
        !memory_check_key(request->key, e))
        return false;
    memory->ask =
        memory_remove_start(memory->instance->store, rpc_loop(memory->call), actor_of(memory),
                            workspace, request->key, on_removed, memory);
    return true;
}

/* --- the call ----------------------------------------------------------------------------- */

static void *crawbl_memory_on_open(struct rpc_call *call, void *service_ctx) {
    struct memory_call *memory = MEM_NEW(struct memory_call);
    memory->call = call;
    memory->instance = service_ctx;
    return memory;
}

/* Read the message and start its request. The store copies what it needs. */
static void crawbl_memory_take_request(struct memory_call *memory, struct lent bytes,
                                       const struct pb_message *type,
                                       bool (*start)(struct memory_call *, const void *,
                                                     struct err *)) {
    struct arena *arena = arena_new(5 * lent_read(bytes).len + 16 * KIB);
    void *message = arena_alloc(arena, type->size);
    struct err e;
    if (!pb_decode(type, bytes, arena, message, &e)) {
        rpc_end(memory->call, ERR_INTERNAL, err_text(&e));
    } else if (!start(memory, message, &e)) {
        rpc_end(memory->call, e.code, err_text(&e));
    }
    arena_free(arena);
}

static void on_list(struct rpc_call *call, struct lent message, void *ctx) {
    (void)call;
    crawbl_memory_take_request(ctx, message, &crawbl_list_memories_request_table, start_list);
}

static void on_create(struct rpc_call *call, struct lent message, void *ctx) {
    (void)call;
    crawbl_memory_take_request(ctx, message, &crawbl_create_memory_request_table, start_create);
}

static void on_delete(struct rpc_call *call, struct lent message, void *ctx) {
    (void)call;
    crawbl_memory_take_request(ctx, message, &crawbl_delete_memory_request_table, start_delete);
}

static void crawbl_memory_forget(struct memory_call *memory) {
    memory_forget(memory->ask);
    memory->ask = NULL;
}

/* The store carries out the request anyway. */
static void on_cancelled(struct rpc_call *call, enum rpc_cancel why, void *ctx) {
    (void)call, (void)why;
    crawbl_memory_forget(ctx);
}

static void crawbl_memory_on_closed(void *ctx) {
    crawbl_memory_forget(ctx);
    free(ctx);
}

#define HANDLER(take)                                                                          \
    {                                                                                          \
        .open = crawbl_memory_on_open, .message = (take), .cancelled = on_cancelled,           \
        .closed = crawbl_memory_on_closed                                                      \
    }

static const struct rpc_handler list = HANDLER(on_list);
static const struct rpc_handler create = HANDLER(on_create);
static const struct rpc_handler delete = HANDLER(on_delete);

/* --- the service -------------------------------------------------------------------------- */

static const struct rpc_method methods[] = {
    /* clang-format off */
    /* path                                  kind       handler  ends          established     auth       bound request effect */
    {STR_INIT("/" SERVICE "/ListMemories"),  RPC_UNARY, &list,   CLOSE_SINGLE, RPC_BY_HANDLER, RPC_TOKEN, 0, 4 * MIB, RPC_READS, RPC_RATED_CALL},
    {STR_INIT("/" SERVICE "/CreateMemory"),  RPC_UNARY, &create, CLOSE_SINGLE, RPC_BY_HANDLER, RPC_TOKEN, 0, 4 * MIB, RPC_ACTS, RPC_RATED_CALL},
    {STR_INIT("/" SERVICE "/DeleteMemory"),  RPC_UNARY, &delete, CLOSE_SINGLE, RPC_BY_HANDLER, RPC_TOKEN, 0, 4 * MIB, RPC_ACTS, RPC_RATED_CALL},
    /* clang-format on */
};

static bool authenticate(struct rpc_call *call, void *ctx, struct rpc_identity *ret,
                         struct err *e) {
    const struct memory_instance *instance = ctx;
    return crawbl_guard_authenticate(&instance->settings->guard, call, ret, e);
}

void memory_service(struct memory_instance *instance, struct rpc_service *ret) {
    *ret = (struct rpc_service){.name = STR(SERVICE),
                                .methods = methods,
                                .method_count = ARRAY_LEN(methods),
                                .request_max_bytes = instance->settings->message_max_bytes,
                                .authenticate = authenticate,
                                .ctx = instance};
}
