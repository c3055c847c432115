#include "daemon/presence.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

#define END(presences) ((presences)->all + (presences)->count)

void presences_init(struct presences *presences, const struct contract_table *table,
                    const struct config *config) {
    assert(contract_table_ok(table));
    presences->count = table->count;
    presences->all = mem_zero(table->count, sizeof(struct presence));
    for (size_t i = 0; i < table->count; i++) {
        const struct contract *contract = table->rows[i];
        presences->all[i] = (struct presence){
            .contract = contract, .index = i, .wanted = contract_is_wanted(contract, config)};
    }
}

void presences_open(struct presences *presences, const struct contract_process *process) {
    for (struct presence *it = presences->all; it < END(presences); it++)
        if (it->wanted && it->contract->process.open)
            it->state = it->contract->process.open(process);
}

void presences_ready(struct presences *presences, const struct config_snapshot *snapshot) {
    for (struct presence *it = presences->all; it < END(presences); it++)
        if (it->state && it->contract->process.ready)
            it->contract->process.ready(it->state, snapshot->settings[it->index]);
}

void presences_use(struct presences *presences, const struct config_snapshot *snapshot) {
    for (struct presence *it = presences->all; it < END(presences); it++)
        if (it->state && it->contract->process.use)
            it->contract->process.use(it->state, snapshot->settings[it->index]);
}

void presences_stopping(struct presences *presences) {
    for (struct presence *it = presences->all; it < END(presences); it++)
        if (it->state && it->contract->process.stopping)
            it->contract->process.stopping(it->state);
}

void presences_stopped(struct presences *presences, bool forced) {
    for (struct presence *it = presences->all; it < END(presences); it++)
        if (it->state && it->contract->process.stopped)
            it->contract->process.stopped(it->state, forced);
}

void presences_done(struct presences *presences) {
    for (struct presence *it = presences->all; it < END(presences); it++)
        if (it->state && it->contract->process.close) it->contract->process.close(it->state);
    free(presences->all);
}

bool presence_healthy(const struct presence *presence) {
    return !presence->state || !presence->contract->process.healthy ||
           presence->contract->process.healthy(presence->state);
}
