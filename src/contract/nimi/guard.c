#include "contract/nimi/guard.h"

static const struct {
    bool open, needs_token;
    struct str capability;
} guards[GUARD_COUNT] = {
    /* clang-format off */
    [GUARD_OPEN]         = {true,  false, STR_INIT("")},
    [GUARD_CALLER]       = {false, false, STR_INIT("")},
    [GUARD_SUBJECT]      = {false, true,  STR_INIT("")},
    [GUARD_AUDIT_EXPORT] = {false, true,  STR_INIT("runtime.audit.export")},
    [GUARD_MEMORY_READ]  = {false, true,  STR_INIT("runtime.memory.read")},
    [GUARD_MEMORY_WRITE] = {false, true,  STR_INIT("runtime.memory.write")},
    [GUARD_AGENT_READ]   = {false, true,  STR_INIT("runtime.agent.read")},
    [GUARD_AGENT_WRITE]  = {false, true,  STR_INIT("runtime.agent.write")},
    /* clang-format on */
};

bool guard_needs_token(enum nimi_guard guard, bool require_token) {
    return guards[guard].needs_token || (require_token && !guards[guard].open);
}

struct str guard_capability(enum nimi_guard guard) {
    return guards[guard].capability;
}

bool guard_scope_has(struct str scope, struct str capability) {
    for (struct str rest = scope; rest.len;) {
        if (str_equal(str_split(rest, ' ', &rest), capability)) return true;
    }
    return false;
}
