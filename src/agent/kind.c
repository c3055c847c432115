#include "agent/kind.h"

#define ADDRESS(name) &name##_agent,
static const struct agent_kind *const kinds[] = {AGENT_KINDS(ADDRESS)};

#define NAME(name) #name,
const char *const agent_kind_names[] = {"model", AGENT_KINDS(NAME) NULL};

const struct agent_kind *agent_kind_find(struct str name) {
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (str_equal(name, str_from(kinds[i]->name))) return kinds[i];
    }
    return NULL;
}
