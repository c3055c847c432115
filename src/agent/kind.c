#include "agent/kind.h"

#define ADDRESS(name) &name##_agent,
static const struct agent_kind *const kinds[] = {AGENT_KINDS(ADDRESS)};

#define NAME(name) #name,
const char *const agent_kind_names[] = {"model", AGENT_KINDS(NAME) NULL};

size_t agent_asked_at(const struct provider_request *request) {
    for (size_t i = request->message_count; i-- > request->turn_start;) {
        if (request->messages[i].role == MESSAGE_USER) return i;
    }
    return request->turn_start;
}

const struct agent_kind *agent_kind_find(struct str name) {
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (str_equal(name, str_from(kinds[i]->name))) return kinds[i];
    }
    return NULL;
}
