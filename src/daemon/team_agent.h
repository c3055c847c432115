/* team_agent: make the provider of an agent that is not a model. Private to team.c. */
#ifndef WEIR_DAEMON_TEAM_AGENT_H
#define WEIR_DAEMON_TEAM_AGENT_H

#include "daemon/team.h"

/* from: of a kind, and with the key that its kind needs; the caller ends *ret with
 * provider_free().
 * errors  those of the kind, with their place; a missing library */
MUST_CHECK bool team_agent_new(const struct config_agent *from,
                               const struct team_resources *resources, struct provider **ret,
                               struct err *e);

/* Texts of the settings, which end in NUL, as a list that ends with NULL; free() it. */
const char **team_texts(const struct str *texts, size_t count);

#endif
