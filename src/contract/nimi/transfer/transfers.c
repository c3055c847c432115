#include "contract/nimi/transfer/transfers.h"

#include "base/mem.h"
#include "contract/nimi/asset.h"
#include "contract/nimi/subscription.h"
#include "contract/nimi/transfer/download.h"
#include "wire/grpc.h"

#include <stdlib.h>

#define REPLY_MAX_BYTES (1 * MIB)

/* --- installing --------------------------------------------------------------------------- */

struct install {
    struct nimi_call *call;
    struct download_wait *wait; /* NULL: it has ended */
    struct str connector, model;
};

static bool may_install(const struct nimi_connector *connector, struct str subject) {
    return connector->local && connector->enabled && connector->probe_url.len &&
           offered_to(connector, subject);
}

/* `asset` is "local/MODEL", "MODEL", or "CONNECTOR/MODEL" as ListLocalAssets tells it. */
static const struct nimi_connector *find_asset(const struct nimi_call *call, struct str asset,
                                               struct str *ret_model) {
    const struct nimi_settings *settings = call->instance->settings;
    struct str model = asset;
    if (str_starts(asset, STR("local/"))) model = str_skip(asset, STR("local/").len);
    for (size_t i = 0; i < settings->connector_count; i++) {
        const struct nimi_connector *connector = &settings->connectors[i];
        struct str rest = str_skip(asset, connector->id.len);
        if (!may_install(connector, call->subject)) continue;
        *ret_model = model;
        if (offered_lists(connector, model)) return connector;
        if (!str_starts(asset, connector->id) || !str_starts(rest, STR("/"))) continue;
        *ret_model = str_skip(rest, 1);
        if (offered_lists(connector, *ret_model)) return connector;
    }
    return NULL;
}

static void reply_installed(const struct install *install) {
    const struct nimi_connector *connector =
        offered_find(install->call->instance->settings, install->connector);
    struct arena *arena = arena_new(MIB);
    struct nimi_local_asset_record asset = {.asset_id = install->model};
    struct offered_health health;
    offered_look(install->call, &health);
    if (connector) asset = asset_of(connector, install->model, &health, arena);
    nimi_reply(install->call, &nimi_install_verified_asset_response_table,
               &(struct nimi_install_verified_asset_response){.asset = &asset});
    arena_free(arena);
}

static void transfers_on_ended(const struct download_ended *ended, void *ctx) {
    struct install *install = ctx;
    install->wait = NULL;
    if (install->call->over) return;
    if (ended->state == DOWNLOAD_COMPLETED) {
        reply_installed(install);
    } else if (ended->state == DOWNLOAD_CANCELLED) {
        nimi_refuse_code(install->call, NIMI_AI_LOCAL_DOWNLOAD_FAILED, ERR_CANCELLED,
                         "the transfer was cancelled");
    } else {
        nimi_refuse_for(install->call, ended->reason, "%s", ended->message);
    }
}

static void install_leave(void *ctx) {
    struct install *install = ctx;
    download_wait_leave(install->wait);
    install->wait = NULL;
}

static void transfers_on_cancelled(enum close_cause why, void *ctx) {
    (void)why;
    install_leave(ctx);
}

static void install_closed(void *ctx) {
    install_leave(ctx);
    free(ctx);
}

/* The download goes on without its caller. */
static const struct nimi_work install_events = {
    .stopping = install_leave, .cancelled = transfers_on_cancelled, .closed = install_closed};

static bool install_begin(struct install *install,
                          const struct nimi_install_verified_asset_request *from,
                          struct fault *fault) {
    struct nimi_call *call = install->call;
    struct str asset = str_trim(from->template_id), model;
    const struct nimi_connector *connector = find_asset(call, asset, &model);
    if (from->endpoint.len)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "an endpoint is not chosen by a request; the operator's connectors "
                         "have it");
    if (!connector)
        return fault_set(fault, NIMI_AI_LOCAL_TEMPLATE_NOT_FOUND,
                         "no local connector with a server lists the model '" STR_FMT
                         "'; its operator names it under connectors.models",
                         STR_ARG(str_head(asset, 80)));
    install->connector = nimi_keep(call, connector->id);
    install->model = nimi_keep(call, model);
    return downloads_begin(call->instance, connector, model, transfers_on_ended, install,
                           &install->wait, fault);
}

void transfers_install(struct nimi_call *call, const void *request) {
    struct install *install = MEM_NEW(struct install);
    struct fault fault;
    install->call = call;
    nimi_work(call, &install_events, install);
    if (!install_begin(install, request, &fault)) nimi_refuse(call, &fault);
}

/* --- pausing, resuming, cancelling -------------------------------------------------------- */

/* A call that answers when the change is stored. */
struct order {
    struct nimi_call *call;
    struct download_ask *ask; /* NULL: stored, or nothing to store */
    struct buf reply;
};

static void on_shown(const struct download *download, void *ctx) {
    struct order *order = ctx;
    char room[DOWNLOAD_TIMES_BYTES];
    const struct nimi_local_transfer_session_summary summary = download_summary(download, room);
    pb_encode_member(1, &nimi_local_transfer_session_summary_table, &summary, &order->reply);
}

static void transfers_on_kept(const struct err *failed, void *ctx) {
    struct order *order = ctx;
    order->ask = NULL;
    if (order->call->over) return;
    if (failed) {
        nimi_refuse_code(order->call, NIMI_AI_PROVIDER_UNAVAILABLE, failed->code,
                         "the change holds, but was not stored: %s", failed->text);
    } else {
        nimi_reply_again(order->call, buf_str(&order->reply));
    }
}

static void order_cancelled(enum close_cause why, void *ctx) {
    struct order *order = ctx;
    (void)why;
    download_forget(order->ask);
    order->ask = NULL;
}

static void order_closed(void *ctx) {
    struct order *order = ctx;
    download_forget(order->ask);
    buf_done(&order->reply);
    free(order);
}

static const struct nimi_work order_events = {.cancelled = order_cancelled,
                                              .closed = order_closed};

static void transfers_order(struct nimi_call *call, struct str id, enum download_order which) {
    struct order *order = MEM_NEW(struct order);
    struct fault fault;
    order->call = call;
    buf_init(&order->reply, REPLY_MAX_BYTES);
    nimi_work(call, &order_events, order);
    if (!str_trim(id).len) {
        nimi_refuse_for(call, NIMI_PROTOCOL_ENVELOPE_INVALID,
                        "the request needs an install_session_id");
    } else if (!downloads_order(call->instance, str_trim(id), call->subject, which, on_shown,
                                transfers_on_kept, order, &order->ask, &fault)) {
        nimi_refuse(call, &fault);
    } else if (!order->ask) {
        nimi_reply_again(call, buf_str(&order->reply));
    }
}

void transfers_pause(struct nimi_call *call, const void *request) {
    const struct nimi_pause_local_transfer_request *from = request;
    transfers_order(call, from->install_session_id, DOWNLOAD_PAUSE);
}

void transfers_resume(struct nimi_call *call, const void *request) {
    const struct nimi_resume_local_transfer_request *from = request;
    transfers_order(call, from->install_session_id, DOWNLOAD_RESUME);
}

void transfers_cancel(struct nimi_call *call, const void *request) {
    const struct nimi_cancel_local_transfer_request *from = request;
    transfers_order(call, from->install_session_id, DOWNLOAD_CANCEL);
}

/* --- listing and watching ----------------------------------------------------------------- */

/* A list of summaries is the field 1 of its reply, once for each. */
static void put_summary(const struct download *download, void *ctx) {
    char room[DOWNLOAD_TIMES_BYTES];
    const struct nimi_local_transfer_session_summary summary = download_summary(download, room);
    pb_encode_member(1, &nimi_local_transfer_session_summary_table, &summary, ctx);
}

void transfers_list(struct nimi_call *call, const void *request) {
    struct buf reply;
    (void)request;
    buf_init(&reply, REPLY_MAX_BYTES);
    downloads_show(call->instance->runtime->downloads, call->subject, put_summary, &reply);
    nimi_reply_again(call, buf_str(&reply));
    buf_done(&reply);
}

static void transfers_put_event(const struct download *download, void *ctx) {
    char room[DOWNLOAD_TIMES_BYTES];
    const struct nimi_local_transfer_session_summary summary = download_summary(download, room);
    const struct nimi_local_transfer_progress_event event =
        download_event(&summary, download->state);
    struct buf *out = ctx;
    size_t begin = grpc_begin_message(out);
    pb_encode(&nimi_local_transfer_progress_event_table, &event, out);
    grpc_end_message(out, begin);
}

static bool watch_wants(struct str owner, const void *ctx) {
    const struct str *subject = ctx;
    return !owner.len || str_equal(owner, *subject);
}

/* What is there now, then what comes; between them nothing is missing or repeated. */
void transfers_watch(struct nimi_call *call, const void *request) {
    struct downloads *downloads = call->instance->runtime->downloads;
    struct str *subject = MEM_NEW(struct str);
    struct subscription_options options = {.topic = downloads_topic(downloads),
                                           .start = TOPIC_AFTER,
                                           .wants = watch_wants,
                                           .filter = subject};
    struct buf now;
    (void)request;
    buf_init(&now, REPLY_MAX_BYTES);
    *subject = call->subject;
    options.after = downloads_show(downloads, call->subject, transfers_put_event, &now);
    struct subscription *subscription = subscription_start(call, &options, NULL);
    char *room = now.len ? rpc_messages_room(call->rpc, now.len) : NULL;
    if (room) {
        memcpy(room, now.at, now.len);
        rpc_messages_put(call->rpc, now.len);
    }
    buf_done(&now);
    subscription_settle(call, subscription);
}
