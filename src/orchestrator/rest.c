/* The routes of the orchestrator. A call looks up its workspace, then asks the database or
 * starts a talk, and answers when that is over; a caller who leaves cancels his talk. */
#include "base/arena.h"
#include "base/id.h"
#include "base/mem.h"
#include "orchestrator/contract.h"
#include "orchestrator/readers.h"
#include "orchestrator/request.h"
#include "orchestrator/rest_inner.h"

#include <stdlib.h>

#define ARENA_MAX_BYTES (8 * MIB)
#define BODY_MAX_BYTES MIB
#define ANSWER_MAX_BYTES (64 * MIB)

/* --- failures ------------------------------------------------------------------------------------- */

static void failure_body(const struct route_failure *failure, struct buf *out) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_str(&writer, "message", failure->message);
    json_member_str(&writer, "code", failure->code);
    json_close(&writer);
}

void rest_fail(struct rest_call *rest, int status, const char *code, struct str message) {
    if (!rest->call) return;
    route_fail(rest->call, &(struct route_failure){status, str_from(code), message, STR_EMPTY});
}

/* Errors of the database are not the caller's business. */
static void fail_for(struct rest_call *rest, const struct err *why) {
    bool workspace = str_starts(err_text(why), STR("workspace"));
    if (why->code == ERR_NOT_FOUND)
        rest_fail(rest, 404, workspace ? "WSP0001" : "CHT0001", err_text(why));
    else if (readers_refused(why))
        rest_fail(rest, 429, "REQ0003", err_text(why));
    else if (why->code == ERR_INVALID_ARGUMENT)
        rest_fail(rest, 400, "REQ0001", err_text(why));
    else
        rest_fail(rest, 500, "INT0001", STR("Something went wrong"));
}

void rest_answer(struct rest_call *rest, int status, const struct buf *body) {
    if (rest->call) route_reply(rest->call, status, STR("application/json"), buf_str(body));
}

/* --- one call --------------------------------------------------------------------------------------- */

/* It lives until its route call is over and what it has asked is answered. */
static void rest_unref(struct rest_call *rest) {
    if (--rest->refs) return;
    workspace_unref(rest->workspace);
    arena_free(rest->arena);
    free(rest);
}

static void on_call_left(void *ctx) {
    struct rest_call *rest = ctx;
    struct talk *talk = rest->talk;
    rest->call = NULL;
    rest->talk = NULL;
    if (talk) {
        rest->refs--; /* the talk's; the call's is left */
        talk_cancel(talk);
    }
    rest_unref(rest);
}

static void on_call_closed(void *ctx) {
    struct rest_call *rest = ctx;
    rest->call = NULL;
    rest_unref(rest);
}

static const struct route_watch watch = {.left = on_call_left, .closed = on_call_closed};

static struct str rest_keep(struct rest_call *rest, struct str text) {
    struct str own;
    return arena_str(rest->arena, text, &own) ? own : STR_EMPTY;
}

static struct str parameter(struct rest_call *rest, const char *name) {
    struct buf text;
    buf_init(&text, KIB);
    bool good =
        route_parameter_text(rest->call, str_from(name), &text) && id_ok(buf_str(&text));
    struct str own = good ? rest_keep(rest, buf_str(&text)) : STR_EMPTY;
    buf_done(&text);
    return own;
}

static bool identify(struct route_call *call, struct orchestrator *orchestrator,
                     struct orchestrator_caller *ret, struct err *e) {
    size_t count, given = 0, uids = 0;
    const struct field *fields = exchange_fields(route_exchange(call), &count);
    struct str authorization = STR_EMPTY, uid = STR_EMPTY;
    for (size_t i = 0; i < count; i++) {
        if (str_equal(fields[i].name, STR("x-firebase-uid"))) {
            uid = uids++ ? STR(",") : str_trim(fields[i].value); /* twice: refused */
        }
        if (!str_equal(fields[i].name, STR("authorization"))) continue;
        authorization = fields[i].value;
        given++;
    }
    return orchestrator_caller(orchestrator, uid, authorization, given, ret, e);
}

static enum route_entry rest_guard(struct route_call *call, const struct route *row, void *ctx,
                                   struct route_failure *ret) {
    struct orchestrator *orchestrator = ctx;
    struct orchestrator_caller caller;
    struct err e;
    (void)row;
    if (!orchestrator->talks || orchestrator->stopping) {
        route_field(call, STR("retry-after"), STR("1"));
        *ret = (struct route_failure){503, STR("INT0002"), STR("The service is not ready"),
                                      STR_EMPTY};
        return ENTRY_REFUSED;
    }
    if (identify(call, orchestrator, &caller, &e)) return ENTRY_PROVED;
    *ret =
        (struct route_failure){401, STR("AUTH0001"), route_keep(call, err_text(&e)), STR_EMPTY};
    return ENTRY_REFUSED;
}

/* NULL: it was refused. Keys may have changed since the guard looked. */
static struct rest_call *rest_new(struct route_call *call, struct orchestrator *orchestrator) {
    struct rest_call *rest = MEM_NEW(struct rest_call);
    struct err e;
    rest->refs = 1;
    rest->call = call;
    rest->orchestrator = orchestrator;
    rest->arena = arena_new(ARENA_MAX_BYTES);
    bool known = identify(call, orchestrator, &rest->caller, &e);
    rest->caller.user = rest_keep(rest, rest->caller.user);
    if (known) {
        route_watch(call, &watch, rest);
        return rest;
    }
    rest_fail(rest, 401, "AUTH0001", err_text(&e));
    rest_unref(rest);
    return NULL;
}

void rest_ask(struct rest_call *rest, struct query *query, query_done_fn *done) {
    rest->refs++;
    const struct read_owner owner = {rest->caller.workspace, rest->caller.user};
    readers_ask(rest->orchestrator->queries.readers, &owner, query, done, rest);
}

bool rest_answered(struct rest_call *rest, const struct err *failed) {
    if (!failed) return rest->call != NULL;
    fail_for(rest, failed);
    return false;
}

void rest_release(struct rest_call *rest) {
    rest_unref(rest);
}

/* --- with a workspace ---------------------------------------------------------------------------------- */

static void rest_on_workspace(struct workspace *found, const struct err *failed, void *ctx) {
    struct rest_call *rest = ctx;
    if (rest_answered(rest, failed)) {
        rest->workspace = found ? workspace_ref(found) : NULL;
        rest->found(rest);
    }
    workspace_unref(found);
    rest_unref(rest);
}

static void in_workspace(struct rest_call *rest, void (*found)(struct rest_call *rest)) {
    struct str workspace = parameter(rest, "workspace");
    struct workspace_question question =
        orchestrator_question(&rest->caller, workspace, parameter(rest, "conversation"));
    question.reads = !rest->sends;
    rest->found = found;
    rest->refs++;
    workspace_find(&rest->orchestrator->queries, &question, rest_on_workspace, rest);
}

/* --- sending a message ------------------------------------------------------------------------------------ */

static void on_talk_over(const struct shown_message *answer, const struct talk_failure *failure,
                         void *ctx) {
    struct rest_call *rest = ctx;
    struct buf body;
    rest->talk = NULL;
    if (failure) {
        rest_fail(rest, failure->status, failure->code, str_from(failure->text));
    } else {
        buf_init(&body, ANSWER_MAX_BYTES);
        struct json_writer writer = json_writer(&body);
        json_open_object(&writer);
        json_key(&writer, STR("data"));
        shown_message(&writer, answer);
        json_close(&writer);
        rest_answer(rest, 201, &body);
        buf_done(&body);
    }
    rest_unref(rest);
}

static const struct talk_sink talk_sink = {.on_over = on_talk_over};

bool rest_conversation(struct rest_call *rest) {
    if (rest->workspace->conversation.len) return true;
    rest_fail(rest, 404, "CHT0001", STR("conversation not found"));
    return false;
}

static void send_found(struct rest_call *rest) {
    struct talk_mention mentions[REQUEST_MENTIONS_MAX];
    if (!rest_conversation(rest)) return;
    const struct talk_request request = request_for(&rest->request, rest->workspace, mentions);
    rest->refs++;
    rest->talk = talk_start(rest->orchestrator->talks, &request, &talk_sink, rest);
}

static bool rest_read_body(struct rest_call *rest, struct err *e) {
    struct str body = rest_keep(rest, lent_read(route_body(rest->call)));
    struct json json;
    if (!json_read(body, &json, e) || !request_read(json, rest->arena, &rest->request, e))
        return false;
    return str_trim(rest->request.text).len ||
           err_set(e, ERR_INVALID_ARGUMENT, "content.text is required");
}

static void send_message(struct route_call *call, void *ctx) {
    struct rest_call *rest = rest_new(call, ctx);
    struct err e;
    if (!rest) return;
    rest->sends = true;
    if (rest_read_body(rest, &e))
        in_workspace(rest, send_found);
    else
        rest_fail(rest, 400, "REQ0001", err_text(&e));
}

/* --- the table ---------------------------------------------------------------------------------------------- */

static void list_messages(struct route_call *call, void *ctx) {
    struct rest_call *rest = rest_new(call, ctx);
    if (rest && rest_read_page(rest, REST_MESSAGES)) in_workspace(rest, rest_messages);
}

static void list_conversations(struct route_call *call, void *ctx) {
    struct rest_call *rest = rest_new(call, ctx);
    if (rest && rest_read_page(rest, REST_LINES)) in_workspace(rest, rest_conversations);
}

static void list_agents(struct route_call *call, void *ctx) {
    struct rest_call *rest = rest_new(call, ctx);
    if (rest && rest_read_page(rest, REST_LINES)) in_workspace(rest, rest_agents);
}

static void usage_summary(struct route_call *call, void *ctx) {
    struct rest_call *rest = rest_new(call, ctx);
    if (rest) rest_usage(rest);
}

static void health(struct route_call *call, void *ctx) {
    const struct orchestrator *orchestrator = ctx;
    bool good = orchestrator->talks && !orchestrator->stopping &&
                postgres_state(orchestrator->queries.postgres) == POSTGRES_READY;
    route_reply(call, good ? 200 : 503, STR("application/json"),
                good ? STR("{\"status\":\"ok\"}") : STR("{\"status\":\"unavailable\"}"));
}

#define WORKSPACE "/v1/workspaces/{workspace}"
#define MESSAGES WORKSPACE "/conversations/{conversation}/messages"

/* clang-format off */
static const struct route rows[] = {
    {STR_INIT("POST"), STR_INIT(MESSAGES),                   send_message,       ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("GET"),  STR_INIT(MESSAGES),                   list_messages,      ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("GET"),  STR_INIT(WORKSPACE "/conversations"), list_conversations, ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("GET"),  STR_INIT(WORKSPACE "/agents"),        list_agents,        ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("GET"),  STR_INIT("/v1/users/usage/summary"),  usage_summary,      ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("GET"),  STR_INIT("/health"),                  health,             ROUTE_OPEN,    ROUTE_HEAD},
};
/* clang-format on */

void orchestrator_routes(void *instance, struct route_table *ret) {
    *ret = (struct route_table){.rows = rows,
                                .row_count = ARRAY_LEN(rows),
                                .body_max_bytes = BODY_MAX_BYTES,
                                .guard = rest_guard,
                                .failure_body = failure_body,
                                .ctx = instance};
}
