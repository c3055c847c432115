/* Push notifications: the webhooks of a task are put, read and deleted; a message may bring one. */
#include "contract/a2a/door.h"

#include "base/log.h"

#define LIST_MAX_BYTES MIB

/* --- what may be called -------------------------------------------------------------------- */

static bool refuse_unsupported(struct a2a_call *call) {
    a2a_fail(call, A2A_ERROR_PUSH_NOT_SUPPORTED,
             STR("webhooks are not called here (a2a.webhooks is off); read the task's "
                 "stream, or ask for the task"));
    return false;
}

static bool refuse_place(struct a2a_call *call) {
    a2a_fail(
        call, A2A_ERROR_INVALID_PARAMS,
        STR("url: this address is not called; it must be a public one, without a user name "
            "(a2a.webhooks)"));
    return false;
}

/* The default id is the task's, as in the SDKs: to put it again replaces it. */
static struct webhook_put put_of(struct a2a_call *call, uint64_t run, struct str workspace,
                                 char room[static 24]) {
    struct buf id = {.at = room, .room = 24, .max_bytes = 24};
    struct webhook_put put = {.place = &call->instance->place,
                              .run = run,
                              .workspace = workspace,
                              .dialect = call->dialect,
                              .webhook = call->request.webhook};
    buf_append_u64(&id, run);
    if (!put.webhook.id.len) put.webhook.id = buf_str(&id);
    return put;
}

static bool may_be_called(struct a2a_call *call) {
    const struct a2a_settings *settings = a2a_settings(call->instance);
    if (!settings->card.webhooks) return refuse_unsupported(call);
    return http_url_is_in_reach(settings->webhook_reach, call->request.webhook.url) ||
           refuse_place(call);
}

static void on_room(bool stands, const struct err *failed, void *ctx) {
    struct a2a_call *call = ctx;
    (void)stands;
    call->claiming = NULL;
    if (failed) {
        a2a_fail(call, a2a_error_of(failed->code), err_text(failed));
    } else {
        call->has_room(call);
    }
}

void a2a_check_webhook(struct a2a_call *call, void (*has_room)(struct a2a_call *call)) {
    const struct a2a_instance *instance = call->instance;
    char room[24];
    struct err e = {0};
    if (!call->request.has_webhook) {
        has_room(call);
        return;
    }
    if (!may_be_called(call)) return;
    const struct webhook_put put = put_of(call, call->request.task, call->http.workspace, room);
    if (instance->shared) {
        call->has_room = has_room;
        http_turn_watch(&call->http);
        call->claiming = shared_webhooks_room(&put, on_room, call);
    } else if (webhooks_have_room(instance->webhooks, &put, &e)) {
        has_room(call);
    } else {
        a2a_fail(call, a2a_error_of(e.code), err_text(&e));
    }
}

void a2a_add_webhook(struct a2a_call *call, uint64_t run) {
    char room[24];
    struct kept_ask *ask;
    struct err e = {0};
    if (!call->request.has_webhook) return;
    const struct webhook_put put = put_of(call, run, call->http.workspace, room);
    if (call->instance->shared)
        shared_webhooks_put(call->instance->shared, &put, NULL, NULL);
    else if (!webhooks_put(call->instance->webhooks, &put, NULL, NULL, &ask, &e))
        log_warning("a2a: a task began without its webhook: %s", e.text);
}

/* --- the operations ------------------------------------------------------------------------ */

static void reply_webhook(struct a2a_call *call, const struct webhook *webhook) {
    struct buf result;
    buf_init(&result, LIST_MAX_BYTES);
    struct json_writer w = json_writer(&result);
    webhook_write(webhook, call->request.task, call->dialect, &w);
    a2a_reply(call, &result);
    buf_done(&result);
}

static void reply_put(struct a2a_call *call) {
    char room[24];
    const struct webhook_put put =
        put_of(call, call->request.task, call->summary.workspace, room);
    reply_webhook(call, &put.webhook);
}

static void webhook_calls_on_kept(const struct kept_record *records, size_t count,
                                  const struct err *failed, void *ctx) {
    struct a2a_call *call = ctx;
    (void)records;
    (void)count;
    call->keeping = NULL;
    if (failed) {
        http_turn_give_up(&call->http, failed);
    } else {
        reply_put(call);
    }
}

static void on_shared_put(bool stands, const struct err *failed, void *ctx) {
    struct a2a_call *call = ctx;
    (void)stands;
    call->putting = NULL;
    if (failed) {
        a2a_fail(call, a2a_error_of(failed->code), err_text(failed));
    } else {
        reply_put(call);
    }
}

static void put_webhook(struct a2a_call *call) {
    struct a2a_instance *instance = call->instance;
    char room[24];
    struct err e = {0};
    const struct webhook_put put =
        put_of(call, call->request.task, call->summary.workspace, room);
    if (instance->shared) {
        call->putting = shared_webhooks_put(instance->shared, &put, on_shared_put, call);
    } else if (!webhooks_put(instance->webhooks, &put, webhook_calls_on_kept, call,
                             &call->keeping, &e)) {
        a2a_fail(call, a2a_error_of(e.code), err_text(&e));
    } else if (!call->keeping) {
        reply_put(call);
    }
}

static void refuse_webhook(struct a2a_call *call) {
    a2a_fail(call, A2A_ERROR_TASK_NOT_FOUND,
             STR("the task has no push notification configuration of this id"));
}

/* What a client that reads webhooks gets: the first that it is shown, or all in one page, which they
 * fit into (WEBHOOKS_OF_TASK_MAX). */
struct shown_webhooks {
    struct a2a_call *call;
    struct buf text;
    struct json_writer w;
    bool lists, found;
};

static void shown_begin(struct shown_webhooks *shown, struct a2a_call *call) {
    *shown =
        (struct shown_webhooks){.call = call, .lists = call->operation == A2A_WEBHOOK_LIST};
    buf_init(&shown->text, LIST_MAX_BYTES);
    shown->w = json_writer(&shown->text);
    if (!shown->lists) return;
    if (call->dialect == A2A_1_0) json_open_object(&shown->w);
    if (call->dialect == A2A_1_0) json_key(&shown->w, STR("configs"));
    json_open_array(&shown->w);
}

static void shown_add(const struct webhook *webhook, void *ctx) {
    struct shown_webhooks *shown = ctx;
    if (shown->lists || !shown->found)
        webhook_write(webhook, shown->call->request.task, shown->call->dialect, &shown->w);
    shown->found = true;
}

static void shown_end(struct shown_webhooks *shown) {
    if (shown->lists) {
        json_close(&shown->w);
        if (shown->w.depth) json_member_str(&shown->w, "nextPageToken", STR_EMPTY);
        if (shown->w.depth) json_close(&shown->w);
    }
    if (shown->lists || shown->found) {
        a2a_reply(shown->call, &shown->text);
    } else {
        refuse_webhook(shown->call);
    }
    buf_done(&shown->text);
}

/* Empty: all. */
static struct str wanted_id(const struct a2a_call *call) {
    return call->operation == A2A_WEBHOOK_LIST ? STR_EMPTY : call->request.webhook_id;
}

static void show_records(struct a2a_call *call, const struct kept_record *records,
                         size_t count) {
    struct arena *arena = arena_new(KEPT_READ_MAX_BYTES);
    struct str id = wanted_id(call);
    struct shown_webhooks shown;
    shown_begin(&shown, call);
    for (size_t i = 0; i < count; i++) {
        struct webhook_record record;
        if (!webhook_record_read(records[i].bytes, arena, &record)) continue;
        if (!id.len || str_equal(record.webhook.id, id)) shown_add(&record.webhook, &shown);
    }
    arena_free(arena);
    shown_end(&shown);
}

static void on_records(const struct kept_record *records, size_t count,
                       const struct err *failed, void *ctx) {
    struct a2a_call *call = ctx;
    call->keeping = NULL;
    if (failed) {
        http_turn_give_up(&call->http, failed);
    } else {
        show_records(call, records, count);
    }
}

static void show_webhooks(struct a2a_call *call) {
    struct shown_webhooks shown;
    if (call->instance->shared) {
        call->keeping =
            shared_webhooks_read(&call->instance->place, call->request.task, on_records, call);
        return;
    }
    shown_begin(&shown, call);
    webhooks_each(call->instance->webhooks, call->request.task, wanted_id(call), shown_add,
                  &shown);
    shown_end(&shown);
}

static void reply_deleted(struct a2a_call *call) {
    struct buf result;
    buf_init(&result, KIB);
    buf_append(&result, call->dialect == A2A_1_0 ? STR("{}") : STR("null"));
    a2a_reply(call, &result);
    buf_done(&result);
}

static void on_shared_removal(bool stands, const struct err *failed, void *ctx) {
    struct a2a_call *call = ctx;
    (void)stands;
    call->claiming = NULL;
    if (failed) {
        http_turn_give_up(&call->http, failed);
    } else {
        reply_deleted(call);
    }
}

/* One that is gone already is no failure. */
static void delete_webhook(struct a2a_call *call) {
    const struct a2a_request *request = &call->request;
    if (call->instance->shared) {
        call->claiming = shared_webhooks_remove(&call->instance->place, request->task,
                                                request->webhook_id, on_shared_removal, call);
        return;
    }
    webhooks_remove(call->instance->webhooks, request->task, request->webhook_id);
    reply_deleted(call);
}

static void with_task(struct a2a_call *call) {
    switch (call->operation) {
    case A2A_WEBHOOK_PUT: put_webhook(call); break;
    case A2A_WEBHOOK_GET:
    case A2A_WEBHOOK_LIST: show_webhooks(call); break;
    default: delete_webhook(call); break;
    }
}

bool a2a_refuse_webhooks(struct a2a_call *call) {
    bool is_one = call->operation >= A2A_WEBHOOK_PUT && call->operation <= A2A_WEBHOOK_DELETE;
    return is_one && !a2a_settings(call->instance)->card.webhooks && !refuse_unsupported(call);
}

static void find_task(struct a2a_call *call) {
    a2a_look_up(call, call->request.task, with_task);
}

/* The task is looked up first where the store says whether there is room: that says so as well. */
void a2a_webhooks(struct a2a_call *call) {
    bool checked_later = call->instance->shared && call->request.has_webhook;
    if (checked_later && may_be_called(call))
        find_task(call);
    else if (!checked_later)
        a2a_check_webhook(call, find_task);
}
