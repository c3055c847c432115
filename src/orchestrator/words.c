#include "orchestrator/words.h"

static const struct str statuses[MESSAGE_STATUS_COUNT] = {
    [MESSAGE_PENDING] = STR_INIT("pending"),     [MESSAGE_SENT] = STR_INIT("sent"),
    [MESSAGE_DELIVERED] = STR_INIT("delivered"), [MESSAGE_READ] = STR_INIT("read"),
    [MESSAGE_FAILED] = STR_INIT("failed"),       [MESSAGE_INCOMPLETE] = STR_INIT("incomplete"),
    [MESSAGE_SILENT] = STR_INIT("silent"),       [MESSAGE_DELEGATED] = STR_INIT("delegated"),
};

struct str message_status_name(enum message_status status) {
    return statuses[status];
}

static const struct str agent_statuses[AGENT_STATUS_COUNT] = {
    [AGENT_ONLINE] = STR_INIT("online"),     [AGENT_READING] = STR_INIT("reading"),
    [AGENT_THINKING] = STR_INIT("thinking"), [AGENT_WRITING] = STR_INIT("writing"),
    [AGENT_ERROR] = STR_INIT("error"),
};

struct str agent_status_name(enum agent_status status) {
    return agent_statuses[status];
}
