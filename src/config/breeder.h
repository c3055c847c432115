/* breeder: AgentBreeder's agent.yaml, from its file to an agent. Private to config/.
 *
 * Reading (breeder.c) handles one file. Things that the file only names are kept with the agent
 * as nodes: tools, MCP servers, knowledge bases, subagents, guardrails without a rule. When all
 * settings have been read, breeder_team.c finds the subagents, which may have files of their
 * own, and breeder_refs.c finds the rest, each by breeder_find.c. A name that is not found is an
 * error at its line, or, if agent_yaml.missing is warn, a warning.
 *
 * Memory   the arena of the config.
 * Source   contracts/agentbreeder.md 6.2 and 6.3. */
#ifndef WEIR_CONFIG_BREEDER_H
#define WEIR_CONFIG_BREEDER_H

#include "config/build.h"

/* What an agent.yaml names. A list that the file does not have is NULL. */
struct config_breeder {
    struct str file;
    unsigned depth; /* 1: it is a subagent, 2: of a subagent, ... */
    const struct yaml *tools, *servers, *knowledge, *subagents;
    const struct yaml *prompt;            /* the name of a prompt that is not beside the file */
    bool asks;                            /* a human decides about each of its tools */
    const struct config_guardrail *rules; /* written in the file */
    size_t rule_count;
    const struct yaml **missing; /* guardrails without a rule in the file */
    size_t missing_count;
};

/* Read the file at `path` as one more agent. `at` names it.
 * errors  those of reading and parsing; it is no agent.yaml */
MUST_CHECK bool breeder_read_file(struct config *config, const struct config_input *input,
                                  struct str path, const struct yaml *at,
                                  struct config_agent *ret, struct err *e);

/* Make each subagent a delegate, and an agent if it has a file of its own. */
MUST_CHECK bool breeder_find_subagents(struct config *config, const struct config_input *input,
                                       struct err *e);

/* The last part of a name with slashes. */
struct str breeder_last_part(struct str ref);

/* Whether two names are the same, ignoring case and taking '-' for '_'. */
bool breeder_same(struct str a, struct str b);

/* The text of a key of `item`, or empty. */
struct str breeder_text(const struct yaml *item, const char *key);

/* Something that an agent.yaml names was not found. True: agent_yaml.missing is warn, and a
 * warning was added; go on without it. */
PRINTF_LIKE(4, 5)
MUST_CHECK bool breeder_missing(struct config *config, const struct yaml *at, struct err *e,
                                const char *format, ...);

#endif
