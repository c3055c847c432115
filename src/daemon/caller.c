#include "daemon/caller.h"

static bool secured(void *ctx) {
    const struct edition *edition = ((struct worker *)ctx)->edition;
    for (size_t i = 0; i < edition->contracts.count; i++) {
        const struct contract *contract = edition->contracts.rows[i];
        if (contract->settings.secured && contract->settings.secured(edition->settings[i]))
            return true;
    }
    return false;
}

static bool identify(struct str bearer, struct contract_identity *ret, void *ctx) {
    const struct edition *edition = ((struct worker *)ctx)->edition;
    for (size_t i = 0; i < edition->contracts.count; i++) {
        const struct contract *contract = edition->contracts.rows[i];
        if (contract->settings.identify &&
            contract->settings.identify(edition->settings[i], bearer, ret))
            return true;
    }
    return false;
}

struct contract_callers caller_find(struct worker *worker) {
    return (struct contract_callers){secured, identify, worker};
}
