#include "daemon/listening.h"

#include "base/mem.h"

static struct server_limits limits_of(const struct config *config, bool needs_token) {
    struct server_limits limits = config->limits.server;
    if (!needs_token) limits.streams_max_stranger = 0;
    return limits;
}

static struct listening listening_of(const struct presence *owner, size_t number,
                                     const struct config_snapshot *snapshot) {
    const struct contract_listener *listener = &owner->contract->listeners[number];
    bool strangers =
        listener->strangers && listener->strangers(snapshot->settings[owner->index]);
    return (struct listening){.owner = owner,
                              .listener = listener,
                              .address = owner->wanted ? listener->address(snapshot->config)
                                                       : STR_EMPTY,
                              .limits = limits_of(snapshot->config, strangers)};
}

struct listening *listenings_new(const struct presences *presences,
                                 const struct config_snapshot *snapshot, size_t *ret_count) {
    size_t most = 0, found = 0;
    for (size_t i = 0; i < presences->count; i++)
        most += presences->all[i].contract->listener_count;
    struct listening *list = mem_zero(most, sizeof(struct listening));
    for (size_t i = 0; i < presences->count; i++) {
        const struct presence *owner = &presences->all[i];
        for (size_t n = 0; n < owner->contract->listener_count; n++, found++) {
            list[found] = listening_of(owner, n, snapshot);
            list[found].index = found;
        }
    }
    *ret_count = found;
    return list;
}

bool listenings_start(struct listening *all, size_t count, const struct config *config,
                      struct server *server, exchange_start_fn *on_request, struct err *e) {
    const struct tls_options tls = {config->tls.cert, config->tls.key, config->tls.ca};
    bool wants_tls = tls.cert.len || tls.key.len || tls.ca.len;
    for (struct listening *it = all; it < all + count; it++) {
        const struct listener_options options = {.name = str_from(it->listener->name),
                                                 .address = it->address,
                                                 .limits = &it->limits,
                                                 .on_request = on_request,
                                                 .ctx = it,
                                                 .refusal = it->listener->refusal,
                                                 .tls = wants_tls ? &tls : NULL};
        if (it->address.len && !server_listen(server, &options, e)) return false;
    }
    return true;
}
