/* team_guardrails: compile the rules of the settings and give each agent its own. Private to
 * team.c. */
#ifndef WEIR_DAEMON_TEAM_GUARDRAILS_H
#define WEIR_DAEMON_TEAM_GUARDRAILS_H

#include "daemon/team.h"

/* Compile the rules of the settings, and the built-in ones. noting: what is wrong with a rule was
 * noted already.
 * errors  a rule that does not compile */
MUST_CHECK bool team_make_guardrails(struct team *team, const struct config *config,
                                     bool noting, struct err *e);
void team_free_guardrails(struct team *team);

/* Give `ret` its rules. It borrows the returned list, which the caller owns and ends with
 * free(). */
struct guardrail **team_pick_guardrails(const struct team *team, const struct config *config,
                                        const struct config_agent *from, struct agent *ret);

#endif
