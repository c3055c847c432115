#include "contract/a2a/dialect.h"

/* --- methods ------------------------------------------------------------------------------ */

static const struct a2a_method methods[] = {
    /* clang-format off */
    {STR_INIT("message/send"),                        A2A_0_3, A2A_SEND},
    {STR_INIT("message/stream"),                      A2A_0_3, A2A_STREAM},
    {STR_INIT("tasks/get"),                           A2A_0_3, A2A_GET},
    {STR_INIT("tasks/cancel"),                        A2A_0_3, A2A_CANCEL},
    {STR_INIT("tasks/resubscribe"),                   A2A_0_3, A2A_SUBSCRIBE},
    {STR_INIT("tasks/pushNotificationConfig/set"),    A2A_0_3, A2A_WEBHOOK_PUT},
    {STR_INIT("tasks/pushNotificationConfig/get"),    A2A_0_3, A2A_WEBHOOK_GET},
    {STR_INIT("tasks/pushNotificationConfig/list"),   A2A_0_3, A2A_WEBHOOK_LIST},
    {STR_INIT("tasks/pushNotificationConfig/delete"), A2A_0_3, A2A_WEBHOOK_DELETE},
    {STR_INIT("agent/getAuthenticatedExtendedCard"),  A2A_0_3, A2A_CARD},

    {STR_INIT("SendMessage"),                      A2A_1_0, A2A_SEND},
    {STR_INIT("SendStreamingMessage"),             A2A_1_0, A2A_STREAM},
    {STR_INIT("GetTask"),                          A2A_1_0, A2A_GET},
    {STR_INIT("ListTasks"),                        A2A_1_0, A2A_LIST},
    {STR_INIT("CancelTask"),                       A2A_1_0, A2A_CANCEL},
    {STR_INIT("SubscribeToTask"),                  A2A_1_0, A2A_SUBSCRIBE},
    {STR_INIT("CreateTaskPushNotificationConfig"), A2A_1_0, A2A_WEBHOOK_PUT},
    {STR_INIT("GetTaskPushNotificationConfig"),    A2A_1_0, A2A_WEBHOOK_GET},
    {STR_INIT("ListTaskPushNotificationConfigs"),  A2A_1_0, A2A_WEBHOOK_LIST},
    {STR_INIT("DeleteTaskPushNotificationConfig"), A2A_1_0, A2A_WEBHOOK_DELETE},
    {STR_INIT("GetExtendedAgentCard"),             A2A_1_0, A2A_CARD},

    {STR_INIT("tasks/send"), A2A_BREEDER, A2A_SEND},
    /* clang-format on */
};

const struct a2a_method *a2a_method_find(struct str name) {
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (str_equal(methods[i].name, name)) return &methods[i];
    }
    return NULL;
}

/* --- versions ----------------------------------------------------------------------------- */

/* "1.0", or with a patch level, which says nothing about what is spoken. */
static bool is_version(struct str text, struct str version) {
    if (!str_starts(text, version)) return false;
    struct str rest = str_skip(text, version.len);
    return rest.len == 0 || rest.at[0] == '.';
}

enum a2a_version a2a_version_read(struct str header) {
    if (header.len == 0) return A2A_VERSION_NONE;
    if (is_version(header, STR("1.0"))) return A2A_VERSION_1_0;
    return is_version(header, STR("0.3")) ? A2A_VERSION_0_3 : A2A_VERSION_OTHER;
}

/* Without the header 0.3 is meant, but a method of 1.0 leaves no doubt. */
bool a2a_version_speaks(enum a2a_version version, enum a2a_dialect dialect) {
    if (version == A2A_VERSION_NONE || dialect == A2A_BREEDER) return true;
    return (version == A2A_VERSION_1_0) == (dialect == A2A_1_0);
}

/* --- states ------------------------------------------------------------------------------- */

static const struct {
    struct str names[A2A_DIALECT_COUNT];
    bool terminal;
} states[A2A_STATE_COUNT] = {
    /* clang-format off */
    [A2A_SUBMITTED]      = {{STR_INIT("submitted"), STR_INIT("TASK_STATE_SUBMITTED"), STR_INIT("in_progress")}, false},
    [A2A_WORKING]        = {{STR_INIT("working"), STR_INIT("TASK_STATE_WORKING"), STR_INIT("in_progress")}, false},
    [A2A_INPUT_REQUIRED] = {{STR_INIT("input-required"), STR_INIT("TASK_STATE_INPUT_REQUIRED"), STR_INIT("in_progress")}, false},
    [A2A_COMPLETED]      = {{STR_INIT("completed"), STR_INIT("TASK_STATE_COMPLETED"), STR_INIT("completed")}, true},
    [A2A_FAILED]         = {{STR_INIT("failed"), STR_INIT("TASK_STATE_FAILED"), STR_INIT("failed")}, true},
    [A2A_CANCELED]       = {{STR_INIT("canceled"), STR_INIT("TASK_STATE_CANCELED"), STR_INIT("failed")}, true},
    [A2A_REJECTED]       = {{STR_INIT("rejected"), STR_INIT("TASK_STATE_REJECTED"), STR_INIT("failed")}, true},
    /* clang-format on */
};

struct str a2a_state_name(enum a2a_state state, enum a2a_dialect dialect) {
    return states[state].names[dialect];
}

bool a2a_state_is_terminal(enum a2a_state state) {
    return states[state].terminal;
}

bool a2a_state_find(struct str name, enum a2a_state *ret) {
    for (enum a2a_state state = A2A_SUBMITTED; state < A2A_STATE_COUNT; state++) {
        if (!str_equal(states[state].names[A2A_1_0], name)) continue;
        *ret = state;
        return true;
    }
    return false;
}

/* --- errors ------------------------------------------------------------------------------- */

static const struct a2a_error_row errors[A2A_ERROR_COUNT] = {
    /* clang-format off */
    [A2A_ERROR_PARSE]                 = {-32700, 400, STR_INIT("INVALID_ARGUMENT"), STR_INIT("INVALID_REQUEST"), 400},
    [A2A_ERROR_INVALID_REQUEST]       = {-32600, 400, STR_INIT("INVALID_ARGUMENT"), STR_INIT("INVALID_REQUEST"), 400},
    [A2A_ERROR_METHOD_NOT_FOUND]      = {-32601, 404, STR_INIT("NOT_FOUND"), STR_INIT("METHOD_NOT_FOUND"), 200},
    [A2A_ERROR_INVALID_PARAMS]        = {-32602, 400, STR_INIT("INVALID_ARGUMENT"), STR_INIT("INVALID_PARAMS"), 400},
    [A2A_ERROR_INTERNAL]              = {-32603, 500, STR_INIT("INTERNAL"), STR_INIT("INTERNAL_ERROR"), 500},
    [A2A_ERROR_UNAVAILABLE]           = {-32603, 503, STR_INIT("UNAVAILABLE"), STR_INIT("UNAVAILABLE"), 503},
    [A2A_ERROR_TASK_NOT_FOUND]        = {-32001, 404, STR_INIT("NOT_FOUND"), STR_INIT("TASK_NOT_FOUND"), 404},
    [A2A_ERROR_TASK_NOT_CANCELABLE]   = {-32002, 400, STR_INIT("FAILED_PRECONDITION"), STR_INIT("TASK_NOT_CANCELABLE"), 400},
    [A2A_ERROR_PUSH_NOT_SUPPORTED]    = {-32003, 400, STR_INIT("FAILED_PRECONDITION"), STR_INIT("PUSH_NOTIFICATION_NOT_SUPPORTED"), 400},
    [A2A_ERROR_UNSUPPORTED_OPERATION] = {-32004, 400, STR_INIT("FAILED_PRECONDITION"), STR_INIT("UNSUPPORTED_OPERATION"), 400},
    [A2A_ERROR_CONTENT_TYPE]          = {-32005, 400, STR_INIT("INVALID_ARGUMENT"), STR_INIT("CONTENT_TYPE_NOT_SUPPORTED"), 400},
    [A2A_ERROR_VERSION]               = {-32009, 400, STR_INIT("FAILED_PRECONDITION"), STR_INIT("VERSION_NOT_SUPPORTED"), 400},
    /* clang-format on */
};

const struct a2a_error_row *a2a_error_row(enum a2a_error error) {
    return &errors[error];
}

/* A part of a type that no agent takes is UNIMPLEMENTED: request.h. */
enum a2a_error a2a_error_of(enum err_code code) {
    switch (code) {
    case ERR_MALFORMED:
    case ERR_INVALID_ARGUMENT:
    case ERR_OUT_OF_RANGE:
    case ERR_TOO_LARGE: return A2A_ERROR_INVALID_PARAMS;
    case ERR_UNIMPLEMENTED: return A2A_ERROR_CONTENT_TYPE;
    case ERR_NOT_FOUND: return A2A_ERROR_TASK_NOT_FOUND;
    case ERR_ABORTED:
    case ERR_FAILED_PRECONDITION: return A2A_ERROR_UNSUPPORTED_OPERATION;
    case ERR_UNAVAILABLE:
    case ERR_RESOURCE_EXHAUSTED:
    case ERR_OUT_OF_MEMORY: return A2A_ERROR_UNAVAILABLE;
    default: return A2A_ERROR_INTERNAL;
    }
}
