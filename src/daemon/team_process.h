/* team_process: make the provider of an agent that is a program. Private to team.c. */
#ifndef WEIR_DAEMON_TEAM_PROCESS_H
#define WEIR_DAEMON_TEAM_PROCESS_H

#include "daemon/team.h"

/* The caller ends it with provider_free(). errors  there is no such program */
MUST_CHECK bool team_process_new(const struct config_agent *from, struct process_pool *pool,
                                 struct provider **ret, struct err *e);

#endif
