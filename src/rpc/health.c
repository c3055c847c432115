#include "rpc/health.h"

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "proto/health.pb.h"
#include "rpc/topic_wire.h"
#include "topic/topic.h"

#include <assert.h>
#include <stdlib.h>

#define HEALTH_PATH "/grpc.health.v1.Health/"
#define REQUEST_MAX_BYTES (4 * KIB)
#define STATUSES_KEPT 16 /* a watcher that lags by more of them skips the older ones */

struct health {
    struct map *names; /* name -> struct name */
    struct list all;   /* the same names, as a list */
};

/* A name that has a status or a watcher. */
struct name {
    struct list link;
    struct topic *topic; /* its statuses; NULL without watchers */
    size_t watcher_count;
    struct text text;
    enum health_status status; /* HEALTH_SERVICE_UNKNOWN until it is set */
};

struct watcher {
    struct rpc_call *call; /* first: rpc/topic_wire.h */
    struct topic_reader reader;
    struct health *health;
    struct name *name; /* NULL until the request came */
};

/* --- names ------------------------------------------------------------------------------- */

struct health *health_new(void) {
    struct health *health = MEM_NEW(struct health);
    health->names = map_new();
    list_init(&health->all);
    return health;
}

static void name_free(struct name *name) {
    assert(name->watcher_count == 0);
    topic_unref(name->topic);
    list_remove(&name->link);
    text_done(&name->text);
    free(name);
}

void health_free(struct health *health) {
    if (!health) return;
    LIST_EACH(&health->all, link) name_free(CONTAINER_OF(link, struct name, link));
    map_free(health->names);
    free(health);
}

static struct name *name_get(struct health *health, struct str text) {
    struct name *name = map_find(health->names, text);
    if (name) return name;
    name = MEM_NEW(struct name);
    name->text = text_copy(text);
    name->status = HEALTH_SERVICE_UNKNOWN;
    list_append(&health->all, &name->link);
    map_put(health->names, text, name);
    return name;
}

/* Names that are only watched come from peers, so they are freed with their last watcher. */
static void name_release(struct health *health, struct name *name) {
    if (name->watcher_count) return;
    topic_unref(name->topic);
    name->topic = NULL;
    if (name->status != HEALTH_SERVICE_UNKNOWN) return;
    map_remove(health->names, text_str(name->text));
    name_free(name);
}

/* --- messages ---------------------------------------------------------------------------- */

/* The service that the request names, kept as long as the call. False: the call was ended. */
static bool health_read_request(struct rpc_call *call, struct lent message, struct str *ret) {
    struct err e;
    struct grpc_health_check_request request;
    struct arena *arena = arena_new(2 * REQUEST_MAX_BYTES);
    bool ok = pb_decode(&grpc_health_check_request_table, message, arena, &request, &e);
    if (ok) {
        *ret = rpc_keep(call, request.service);
    } else {
        rpc_end(call, ERR_INTERNAL, err_text(&e));
    }
    arena_free(arena);
    return ok;
}

static void send_status(struct rpc_call *call, enum health_status status) {
    struct grpc_health_check_response response = {.status = (int32_t)status};
    pb_encode(&grpc_health_check_response_table, &response, rpc_message_begin(call));
    rpc_message_end(call);
}

/* --- Check ------------------------------------------------------------------------------- */

static void *check_open(struct rpc_call *call, void *service_ctx) {
    (void)call;
    return service_ctx;
}

static void check_message(struct rpc_call *call, struct lent message, void *ctx) {
    struct health *health = ctx;
    struct str service;
    if (!health_read_request(call, message, &service)) return;
    const struct name *name = map_find(health->names, service);
    if (!name || name->status == HEALTH_SERVICE_UNKNOWN) {
        rpc_end(call, ERR_NOT_FOUND, STR("unknown service"));
        return;
    }
    send_status(call, name->status);
    rpc_end(call, ERR_NONE, STR_EMPTY);
}

static const struct rpc_handler check = {.open = check_open, .message = check_message};

/* --- Watch ------------------------------------------------------------------------------- */

static void rpc_health_publish(struct name *name) {
    struct grpc_health_check_response response = {.status = (int32_t)name->status};
    uint64_t sequence; /* the message has none */
    topic_publish(name->topic, &(struct topic_event){.type = &grpc_health_check_response_table,
                                                     .message = &response,
                                                     .sequence = &sequence});
}

/* A watcher that does not read skips statuses, so it is never lost. */
static const struct topic_wire wire = {
    .room = rpc_topic_room,
    .put = rpc_topic_put,
    .queued = rpc_topic_queued,
    .wake_at = rpc_topic_wake_at,
};

static void watch_name(struct watcher *watcher, struct name *name) {
    watcher->name = name;
    name->watcher_count++;
    if (!name->topic) {
        name->topic = topic_new(&(struct topic_options){.kind = TOPIC_STATE,
                                                        .max_bytes = KIB,
                                                        .max_frames = STATUSES_KEPT,
                                                        .first_sequence = 1});
        rpc_health_publish(name);
    }
    topic_reader_start(&watcher->reader, name->topic, rpc_loop(watcher->call), TOPIC_LATEST, 0,
                       &wire, watcher);
}

static void *watch_open(struct rpc_call *call, void *service_ctx) {
    struct watcher *watcher = MEM_NEW(struct watcher);
    watcher->health = service_ctx;
    watcher->call = call;
    return watcher;
}

static void unwatch(struct watcher *watcher) {
    topic_reader_stop(&watcher->reader);
    if (!watcher->name) return;
    watcher->name->watcher_count--;
    name_release(watcher->health, watcher->name);
    watcher->name = NULL;
}

static void end_watch(struct rpc_call *call, struct watcher *watcher) {
    unwatch(watcher);
    rpc_end(call, ERR_CANCELLED, STR("the server is stopping"));
}

static void watch_message(struct rpc_call *call, struct lent message, void *ctx) {
    struct watcher *watcher = ctx;
    struct str service;
    if (!health_read_request(call, message, &service)) return;
    watch_name(watcher, name_get(watcher->health, service));
    if (!rpc_is_stopping(call)) return;
    topic_reader_flush(&watcher->reader, TOPIC_HIGH_BYTES);
    end_watch(call, watcher);
}

static void watch_stopping(struct rpc_call *call, void *ctx) {
    struct watcher *watcher = ctx;
    topic_reader_flush(&watcher->reader, TOPIC_HIGH_BYTES);
    enum health_status status = watcher->name ? watcher->name->status : HEALTH_SERVICE_UNKNOWN;
    if (status == HEALTH_SERVING || status == HEALTH_UNKNOWN)
        send_status(call, HEALTH_NOT_SERVING);
    end_watch(call, watcher);
}

static void watch_cancelled(struct rpc_call *call, enum rpc_cancel why, void *ctx) {
    (void)call;
    (void)why;
    unwatch(ctx);
}

static void watch_closed(void *ctx) {
    unwatch(ctx);
    free(ctx);
}

static const struct rpc_handler watch = {
    .open = watch_open,
    .message = watch_message,
    .stopping = watch_stopping,
    .cancelled = watch_cancelled,
    .closed = watch_closed,
};

/* --- the service ------------------------------------------------------------------------- */

static const struct rpc_method methods[] = {
    {
        .path = STR_INIT(HEALTH_PATH "Check"),
        .kind = RPC_UNARY,
        .handler = &check,
        .ends = CLOSE_SINGLE,
        .established = RPC_BY_HANDLER,
        .auth = RPC_OPEN,
        .request_max_bytes = REQUEST_MAX_BYTES,
        .effect = RPC_PROBES,
    },
    {
        .path = STR_INIT(HEALTH_PATH "Watch"),
        .kind = RPC_SERVER_STREAM,
        .handler = &watch,
        .ends = CLOSE_SUBSCRIPTION,
        .established = RPC_AT_ACCEPT,
        .auth = RPC_OPEN,
        .request_max_bytes = REQUEST_MAX_BYTES,
        .effect = RPC_PROBES,
    },
};

struct rpc_service health_service(struct health *health) {
    return (struct rpc_service){
        .name = STR("grpc.health.v1.Health"),
        .methods = methods,
        .method_count = ARRAY_LEN(methods),
        .ctx = health,
    };
}

void health_set(struct health *health, struct str service, enum health_status status) {
    assert(status != HEALTH_SERVICE_UNKNOWN);
    struct name *name = name_get(health, service);
    if (name->status == status) return;
    name->status = status;
    if (name->topic) rpc_health_publish(name);
}

void health_set_all(struct health *health, enum health_status status) {
    LIST_EACH(&health->all, link) {
        struct name *name = CONTAINER_OF(link, struct name, link);
        if (name->status != HEALTH_SERVICE_UNKNOWN)
            health_set(health, text_str(name->text), status);
    }
}
