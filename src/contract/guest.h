/* guest: what contracts share that serve the agents on the listener "http".
 *
 * They share the rules of turns, and answer 503 while the daemon starts or stops. Callers of those beside
 * the listener's owner present a token of any contract, or are on this machine where the operator set
 * none; the owner, the Runtime Contract, has a token of its own and admits its callers itself.
 *
 * Memory   struct guest is the first member of a contract's instance; the settings are the
 *          snapshot's.
 * Threads  one loop's.
 * Source   checks.md K6, K23; conventions.md b10.
 */
#ifndef WEIR_CONTRACT_GUEST_H
#define WEIR_CONTRACT_GUEST_H

#include "contract/caller.h"
#include "contract/http_turn.h"

struct guest_settings {
    struct str workspace; /* of callers without a token */
    struct http_turn_rules rules;
    size_t body_max_bytes;
    uint64_t body_stretch_ms; /* as in struct route_table */
    size_t body_stretch_bytes;
    bool takes_api_key; /* the token may stand in x-api-key */
};

/* The settings of its own that every guest has. The text lives as long as the config. */
struct guest_options {
    bool enabled;
    struct str workspace; /* of callers without a token */
    struct leaving on_disconnect;
};

/* Of a contract that has no other settings: what these rows filled. */
const struct guest_options *guest_options(const struct config *config,
                                          const struct setting_rows *rows);

struct guest_settings guest_settings_of(const struct contract_source *from,
                                        const struct guest_options *options);

struct guest {
    const struct guest_settings *settings;
    struct contract_callers callers;
    struct http_turn_site site;
    bool loaded, stopping;
    /* Shape the refusal of a caller as this contract words it. NULL: it stays as it is. */
    void (*refused)(const struct guest *guest, struct route_failure *failure);
};

void guest_init(struct guest *guest, const struct contract_loop *loop,
                const struct guest_settings *settings);

/* For a contract's row, where the instance begins with a guest and its settings with
 * guest_settings. guest_new() makes an instance that is a guest and nothing else. */
void *guest_new(const struct contract_loop *loop, const void *settings, void *state);
void guest_use(void *guest, const void *settings);
void guest_serving(void *guest);
void guest_stopping(void *guest);
void guest_cut(void *guest);

/* A table of guarded routes, whose ctx is the guest. */
void guest_table(struct guest *guest, const struct route *rows, size_t count,
                 void (*failure_body)(const struct route_failure *failure, struct buf *out),
                 struct route_table *ret);

/* Who calls; asked again when the body has come, because keys may have changed and the stop may
 * have begun. False: the call has been refused. */
MUST_CHECK bool guest_enter(struct route_call *call, const struct guest *guest,
                            struct contract_caller *ret);

struct str guest_workspace(const struct guest *guest, const struct contract_caller *caller);

/* The user that the token names, or "anonymous". */
struct str guest_user(const struct contract_caller *caller);

#endif
