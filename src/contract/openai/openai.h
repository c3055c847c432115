/* openai: one loop's share of this contract, and its calls. Private to it.
 *
 * Memory   the instance is its contract's.
 * Threads  one loop's.
 * Source   OpenAI API reference; conventions.md b2, b10.
 */
#ifndef WEIR_CONTRACT_OPENAI_OPENAI_H
#define WEIR_CONTRACT_OPENAI_OPENAI_H

#include "contract/caller.h"
#include "contract/http_turn.h"

#define OPENAI_CONTRACT "openai" /* recorded with the runs */

struct config;
struct team;

struct openai_settings {
    struct str workspace; /* of callers without a token */
    const struct config *config;
    const struct team *team; /* NULL: no media */
    struct http_turn_rules rules;
    size_t body_max_bytes;
    uint64_t body_stretch_ms; /* as in struct route_table */
    size_t body_stretch_bytes;
};

struct openai_instance {
    const struct openai_settings *settings;
    struct contract_callers callers;
    struct http_turn_site site;
    bool loaded, stopping;
    int64_t started_unix_s; /* when its models began to exist, for show */
};

void openai_instance_init(struct openai_instance *instance,
                          const struct openai_settings *settings, struct run_host *host,
                          const struct contract_callers *callers);

/* New turns use these settings. */
void openai_instance_use(struct openai_instance *instance,
                         const struct openai_settings *settings);

void openai_table(struct openai_instance *instance, struct route_table *ret);

/* Who calls; asked again when the body has come. False: the call has been refused. */
MUST_CHECK bool openai_enter(struct route_call *call, const struct openai_instance *instance,
                             struct contract_caller *ret);

struct str openai_workspace(const struct openai_instance *instance,
                            const struct contract_caller *caller);

/* models.c */
route_fn openai_list_models, openai_get_model;

/* chat.c */
route_fn openai_chat;

/* media.c */
route_fn openai_embed, openai_speak;

/* responses.c, responses_stored.c */
route_fn openai_create_response, openai_get_response, openai_cancel_response,
    openai_delete_response;

#endif
