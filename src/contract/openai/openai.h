/* openai: one loop's share of this contract, and its calls. Private to it.
 *
 * Memory   the instance is its contract's.
 * Threads  one loop's.
 * Source   OpenAI API reference; conventions.md b2, b10.
 */
#ifndef WEIR_CONTRACT_OPENAI_OPENAI_H
#define WEIR_CONTRACT_OPENAI_OPENAI_H

#include "contract/guest.h"
#include "wire/json.h"

#define OPENAI_CONTRACT "openai" /* recorded with the runs */

struct config;
struct team;

struct openai_settings {
    struct guest_settings guest; /* first: the guest reads it */
    const struct config *config;
    const struct team *team; /* NULL: no media */
};

struct openai_instance {
    struct guest guest;     /* first; its settings are a struct openai_settings */
    int64_t started_unix_s; /* when its models began to exist, for show */
};

static inline const struct openai_settings *
openai_settings(const struct openai_instance *instance) {
    return (const struct openai_settings *)instance->guest.settings;
}

/* A member that is null where it is not known. */
static inline void openai_member(struct json_writer *json, const char *key, bool known,
                                 struct str text) {
    if (known) {
        json_member_str(json, key, text);
    } else {
        json_member_null(json, key);
    }
}

void openai_table(void *instance, struct route_table *ret);

/* models.c */
route_fn openai_list_models, openai_get_model;

/* chat.c */
route_fn openai_chat;

/* media.c */
route_fn openai_embed, openai_speak;

/* responses.c, responses_stored.c */
route_fn openai_create_response, openai_get_response, openai_cancel_response,
    openai_delete_response, openai_list_input;

#endif
