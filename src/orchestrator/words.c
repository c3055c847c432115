#include "orchestrator/words.h"

#define LAST 99

static const struct {
    struct str name;
    unsigned rank;
} statuses[MESSAGE_STATUS_COUNT] = {
    [MESSAGE_PENDING] = {STR_INIT("pending"), 0},
    [MESSAGE_SENT] = {STR_INIT("sent"), 1},
    [MESSAGE_DELIVERED] = {STR_INIT("delivered"), 2},
    [MESSAGE_READ] = {STR_INIT("read"), 3},
    [MESSAGE_FAILED] = {STR_INIT("failed"), LAST},
    [MESSAGE_INCOMPLETE] = {STR_INIT("incomplete"), LAST},
    [MESSAGE_SILENT] = {STR_INIT("silent"), LAST},
    [MESSAGE_DELEGATED] = {STR_INIT("delegated"), LAST},
};

struct str message_status_name(enum message_status status) {
    return statuses[status].name;
}

bool message_status_may_become(enum message_status status, enum message_status next) {
    return statuses[next].rank > statuses[status].rank;
}

static const struct str agent_statuses[AGENT_STATUS_COUNT] = {
    [AGENT_ONLINE] = STR_INIT("online"),     [AGENT_READING] = STR_INIT("reading"),
    [AGENT_THINKING] = STR_INIT("thinking"), [AGENT_WRITING] = STR_INIT("writing"),
    [AGENT_ERROR] = STR_INIT("error"),
};

struct str agent_status_name(enum agent_status status) {
    return agent_statuses[status];
}
