#include "contract/a2a/request.h"

#include "base/id.h"
#include "contract/a2a/parts.h"
#include "conversation/import.h"
#include "wire/moment.h"

#define HISTORY_MOST 1000000

/* --- values ------------------------------------------------------------------------------- */

static bool a2a_request_too_large(struct err *e) {
    return err_set(e, ERR_RESOURCE_EXHAUSTED, "the request is larger than a call may hold");
}

static bool a2a_request_take_text(struct json object, const char *key, struct arena *arena,
                                  struct str *ret, struct err *e) {
    struct json value = json_find(object, str_from(key));
    if (json_is_absent(value)) return true;
    if (value.kind != JSON_STRING)
        return err_set(e, ERR_INVALID_ARGUMENT, "%s must be a string, not %s", key,
                       json_kind_name(value.kind));
    return json_str(value, arena, ret) || a2a_request_too_large(e);
}

static bool take_flag(struct json object, const char *key, bool *ret, struct err *e) {
    struct json value = json_find(object, str_from(key));
    return json_is_absent(value) || json_bool(value, ret) ||
           err_set(e, ERR_INVALID_ARGUMENT, "%s must be true or false, not %s", key,
                   json_kind_name(value.kind));
}

/* A number; ProtoJSON may have it in a string. */
static bool take_count(struct json object, const char *key, int64_t most, int64_t *ret,
                       struct err *e) {
    struct json value = json_find(object, str_from(key));
    struct json number = value;
    int64_t count;
    if (json_is_absent(value)) return true;
    if (value.kind == JSON_STRING && value.raw.len > 2)
        number = (struct json){JSON_NUMBER, str_of(value.raw.at + 1, value.raw.len - 2)};
    bool reads =
        value.kind == JSON_STRING ? str_to_i64(number.raw, &count) : json_i64(value, &count);
    if (!reads || count < 0 || count > most)
        return err_set(e, ERR_INVALID_ARGUMENT, "%s must be an integer from 0 to %lld", key,
                       (long long)most);
    *ret = count;
    return true;
}

uint64_t a2a_task_id(struct str text) {
    uint64_t run;
    return text.len <= 20 && str_to_u64(text, &run) ? run : 0;
}

static bool take_task(struct json object, const char *key, struct arena *arena,
                      struct a2a_request *ret, struct err *e) {
    struct str task = STR_EMPTY;
    if (!a2a_request_take_text(object, key, arena, &task, e)) return false;
    ret->names_task = task.len > 0;
    ret->task = a2a_task_id(task);
    return true;
}

static bool require_task(const struct a2a_request *request, const char *key, struct err *e) {
    return request->names_task ||
           err_set(e, ERR_INVALID_ARGUMENT, "%s is missing: say which task", key);
}

/* --- a message ---------------------------------------------------------------------------- */

/* The caller's metadata, and the id by which it knows the message. */
static bool take_extras(struct json message, struct arena *arena, struct a2a_request *ret,
                        struct err *e) {
    struct json metadata = json_find(message, STR("metadata")), key, value;
    struct json_reader reader = json_enter(metadata);
    struct buf text;
    if (!json_is_absent(metadata) && metadata.kind != JSON_OBJECT)
        return err_set(e, ERR_INVALID_ARGUMENT, "message.metadata must be an object, not %s",
                       json_kind_name(metadata.kind));
    if (json_count(metadata)) ret->metadata = metadata.raw;
    buf_init(&text, message.raw.len + KIB);
    buf_append(&text, STR("{\"metadata\":{"));
    while (metadata.kind == JSON_OBJECT && json_next_member(&reader, &key, &value)) {
        buf_append(&text, key.raw);
        buf_append_byte(&text, ':');
        json_compact(value.raw, &text);
        buf_append_byte(&text, ',');
    }
    buf_append(&text, STR("\"a2a\":{\"messageId\":"));
    buf_append(&text, json_find(message, STR("messageId")).raw);
    buf_append(&text, STR("}}}"));
    bool fits = buf_ok(&text) && arena_str(arena, buf_str(&text), &ret->extras);
    buf_done(&text);
    return fits || a2a_request_too_large(e);
}

/* [{"role":"user","content":[...]}], read as any caller's list is. */
static bool take_content(struct str content, bool pictures, struct arena *arena,
                         struct a2a_request *ret, struct err *e) {
    struct import import;
    struct json list;
    struct buf text;
    struct str kept;
    buf_init(&text, content.len + KIB);
    buf_append(&text, STR("[{\"role\":\"user\",\"content\":"));
    buf_append(&text, content);
    buf_append(&text, STR("}]"));
    bool fits = arena_str(arena, buf_str(&text), &kept);
    buf_done(&text);
    if (!fits) return a2a_request_too_large(e);
    if (!json_read(kept, &list, e) || !import_read(list, arena, &import, e)) return false;
    ret->text = import.messages[0].text;
    if (pictures) ret->pictured = import.messages;
    return true;
}

static bool take_parts(enum a2a_dialect dialect, struct json message, struct arena *arena,
                       struct a2a_request *ret, struct err *e) {
    struct json parts = json_find(message, STR("parts"));
    struct buf content;
    bool pictures = false;
    buf_init(&content, 6 * message.raw.len + KIB);
    bool fine = a2a_parts_convert(dialect, parts, arena, &content, &pictures, e) &&
                take_content(buf_str(&content), pictures, arena, ret, e);
    buf_done(&content);
    return fine;
}

static bool check_role(enum a2a_dialect dialect, struct json message, struct err *e) {
    struct json role = json_find(message, STR("role"));
    struct str user = dialect == A2A_0_3 ? STR("user") : STR("ROLE_USER");
    return json_is(role, user) ||
           err_set(e, ERR_INVALID_ARGUMENT,
                   "message.role must be \"" STR_FMT "\", not " STR_FMT, STR_ARG(user),
                   STR_ARG(role.raw.len ? str_head(role.raw, 40) : STR("nothing")));
}

static bool take_message(enum a2a_dialect dialect, struct json message, struct arena *arena,
                         struct a2a_request *ret, struct err *e) {
    struct str id = STR_EMPTY;
    if (message.kind != JSON_OBJECT)
        return err_set(e, ERR_INVALID_ARGUMENT, "message must be an object, not %s",
                       json_kind_name(message.kind));
    if (!a2a_request_take_text(message, "messageId", arena, &id, e)) return false;
    if (id.len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "message.messageId is missing: give each message an id of its own");
    return id_check("message.messageId", id, e) && check_role(dialect, message, e) &&
           a2a_request_take_text(message, "contextId", arena, &ret->context, e) &&
           (!ret->context.len || id_check("message.contextId", ret->context, e)) &&
           take_task(message, "taskId", arena, ret, e) &&
           take_parts(dialect, message, arena, ret, e) && take_extras(message, arena, ret, e);
}

static bool take_webhook(enum a2a_dialect dialect, struct json object, struct arena *arena,
                         struct a2a_request *ret, struct err *e) {
    const char *key =
        dialect == A2A_0_3 ? "pushNotificationConfig" : "taskPushNotificationConfig";
    struct json value = json_find(object, str_from(key));
    ret->has_webhook = !json_is_absent(value);
    return !ret->has_webhook || webhook_read(dialect, value, arena, &ret->webhook, e) ||
           err_add(e, "configuration.%s", key);
}

static bool take_configuration(enum a2a_dialect dialect, struct json object,
                               struct arena *arena, struct a2a_request *ret, struct err *e) {
    bool old = dialect == A2A_0_3, blocking = true;
    if (json_is_absent(object)) return true;
    if (object.kind != JSON_OBJECT)
        return err_set(e, ERR_INVALID_ARGUMENT, "configuration must be an object, not %s",
                       json_kind_name(object.kind));
    if (!take_webhook(dialect, object, arena, ret, e)) return false;
    if (old ? !take_flag(object, "blocking", &blocking, e)
            : !take_flag(object, "returnImmediately", &ret->immediately, e))
        return false;
    if (!blocking) ret->immediately = true;
    return take_count(object, "historyLength", HISTORY_MOST, &ret->history_max, e);
}

/* AgentBreeder's: the message is a text; what is beside it in `context` may name the session. */
static bool take_breeder(struct json params, struct arena *arena, struct a2a_request *ret,
                         struct err *e) {
    struct json context = json_find(params, STR("context"));
    if (!a2a_request_take_text(params, "message", arena, &ret->text, e) ||
        !a2a_request_take_text(context, "session_id", arena, &ret->context, e) ||
        !take_task(params, "task_id", arena, ret, e))
        return false;
    ret->names_task = ret->task > 0; /* any other is an id that the caller has thought of */
    if (ret->text.len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "message is missing: say what the agent is to do, as a string");
    return !ret->context.len || id_check("context.session_id", ret->context, e);
}

static bool read_send(enum a2a_dialect dialect, struct json params, struct arena *arena,
                      struct a2a_request *ret, struct err *e) {
    if (dialect == A2A_BREEDER) return take_breeder(params, arena, ret, e);
    return take_configuration(dialect, json_find(params, STR("configuration")), arena, ret,
                              e) &&
           take_message(dialect, json_find(params, STR("message")), arena, ret, e);
}

/* --- the others --------------------------------------------------------------------------- */

/* "<session>-<run>", as list.c writes it. */
static bool take_token(struct str token, struct a2a_request *ret, struct err *e) {
    struct str run, session = str_split(token, '-', &run);
    bool reads = str_to_i64(session, &ret->before_session) && ret->before_session >= 0 &&
                 ret->before_session < INT64_MAX && str_to_u64(run, &ret->before);
    return !token.len || reads ||
           err_set(e, ERR_INVALID_ARGUMENT,
                   "pageToken must be the nextPageToken of a page with the same filters");
}

/* Thousandths of the fraction of a second, a finer one rounded up: that is how our own timestamps
 * compare with it. */
static int64_t thousandths_of(struct str text) {
    int64_t thousandths = 0, unit = 100;
    bool finer = false;
    for (size_t i = str_find(text, STR(".")) + 1; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') break;
        thousandths += unit * (text.at[i] - '0');
        finer |= unit == 0 && text.at[i] != '0';
        unit /= 10;
    }
    return thousandths + finer;
}

static bool take_status_from(struct json params, struct arena *arena, struct a2a_request *ret,
                             struct err *e) {
    struct str text = STR_EMPTY;
    int64_t seconds;
    if (!a2a_request_take_text(params, "statusTimestampAfter", arena, &text, e)) return false;
    if (!text.len) return true;
    if (!moment_read(text, &seconds, e)) return err_add(e, "statusTimestampAfter");
    ret->status_from_ms = seconds * 1000 + thousandths_of(text);
    return true;
}

static bool read_list(struct json params, struct arena *arena, struct a2a_request *ret,
                      struct err *e) {
    struct str token = STR_EMPTY;
    enum a2a_state state;
    int64_t size = A2A_PAGE_USUAL;
    if (!a2a_request_take_text(params, "contextId", arena, &ret->context, e) ||
        !a2a_request_take_text(params, "status", arena, &ret->status, e) ||
        !a2a_request_take_text(params, "pageToken", arena, &token, e) ||
        !take_count(params, "pageSize", A2A_PAGE_MOST, &size, e) ||
        !take_count(params, "historyLength", HISTORY_MOST, &ret->history_max, e) ||
        !take_flag(params, "includeArtifacts", &ret->with_artifacts, e) ||
        !take_status_from(params, arena, ret, e))
        return false;
    if (str_equal(ret->status, STR("TASK_STATE_UNSPECIFIED"))) ret->status = STR_EMPTY;
    if (ret->status.len && !a2a_state_find(ret->status, &state))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "status is not a state of a task: TASK_STATE_COMPLETED, for example");
    ret->page_size = size ? (size_t)size : A2A_PAGE_USUAL;
    return take_token(token, ret, e);
}

static bool read_task(enum a2a_dialect dialect, struct json params, struct arena *arena,
                      struct a2a_request *ret, struct err *e) {
    const char *key = dialect == A2A_BREEDER ? "task_id" : "id";
    return take_task(params, key, arena, ret, e) && require_task(ret, key, e) &&
           take_count(params, "historyLength", HISTORY_MOST, &ret->history_max, e);
}

/* 1.0 has the task beside the rest, 0.3 around it. */
static bool read_webhook(enum a2a_dialect dialect, struct json params, struct arena *arena,
                         struct a2a_request *ret, struct err *e) {
    struct json object = params;
    if (dialect == A2A_0_3) object = json_find(params, STR("pushNotificationConfig"));
    ret->has_webhook = true;
    return take_task(params, "taskId", arena, ret, e) && require_task(ret, "taskId", e) &&
           webhook_read(dialect, object, arena, &ret->webhook, e);
}

/* Which webhooks of a task. */
static bool read_webhook_name(enum a2a_dialect dialect, struct json params, struct arena *arena,
                              struct a2a_request *ret, struct err *e) {
    bool old = dialect == A2A_0_3;
    const char *task = old ? "id" : "taskId";
    return take_task(params, task, arena, ret, e) && require_task(ret, task, e) &&
           a2a_request_take_text(params, old ? "pushNotificationConfigId" : "id", arena,
                                 &ret->webhook_id, e);
}

static bool require_webhook_id(enum a2a_dialect dialect, const struct a2a_request *request,
                               struct err *e) {
    return request->webhook_id.len ||
           err_set(e, ERR_INVALID_ARGUMENT, "%s is missing: say which configuration",
                   dialect == A2A_0_3 ? "pushNotificationConfigId" : "id");
}

void a2a_request_init(struct a2a_request *ret) {
    *ret = (struct a2a_request){.text = STR_EMPTY,
                                .context = STR_EMPTY,
                                .extras = STR_EMPTY,
                                .metadata = STR_EMPTY,
                                .status = STR_EMPTY,
                                .status_from_ms = INT64_MIN,
                                .webhook_id = STR_EMPTY,
                                .history_max = A2A_ALL_HISTORY,
                                .page_size = A2A_PAGE_USUAL};
}

bool a2a_request_read(enum a2a_operation operation, enum a2a_dialect dialect,
                      struct json params, struct arena *arena, struct a2a_request *ret,
                      struct err *e) {
    a2a_request_init(ret);
    switch (operation) {
    case A2A_SEND:
    case A2A_STREAM: return read_send(dialect, params, arena, ret, e);
    case A2A_GET:
    case A2A_CANCEL:
    case A2A_SUBSCRIBE: return read_task(dialect, params, arena, ret, e);
    case A2A_LIST: return read_list(params, arena, ret, e);
    case A2A_WEBHOOK_PUT: return read_webhook(dialect, params, arena, ret, e);
    case A2A_WEBHOOK_LIST: return read_webhook_name(dialect, params, arena, ret, e);
    case A2A_WEBHOOK_GET: /* in 0.3 the only one may go without a name */
    case A2A_WEBHOOK_DELETE:
        return read_webhook_name(dialect, params, arena, ret, e) &&
               ((dialect == A2A_0_3 && operation == A2A_WEBHOOK_GET) ||
                require_webhook_id(dialect, ret, e));
    case A2A_CARD: break; /* nothing of it is read */
    }
    return true;
}
