#include "daemon/caller.h"

static bool secured(void *ctx) {
    const struct config_snapshot *snapshot = ((struct worker *)ctx)->snapshot;
    for (size_t i = 0; i < snapshot->contracts.count; i++) {
        const struct contract *contract = snapshot->contracts.rows[i];
        if (contract->settings.secured && contract->settings.secured(snapshot->settings[i]))
            return true;
    }
    return false;
}

static bool identify(struct str bearer, struct contract_identity *ret, void *ctx) {
    const struct config_snapshot *snapshot = ((struct worker *)ctx)->snapshot;
    for (size_t i = 0; i < snapshot->contracts.count; i++) {
        const struct contract *contract = snapshot->contracts.rows[i];
        if (contract->settings.identify &&
            contract->settings.identify(snapshot->settings[i], bearer, ret))
            return true;
    }
    return false;
}

struct contract_callers caller_find(struct worker *worker) {
    return (struct contract_callers){secured, identify, worker};
}
