/* tools: the tools that an orchestrator offers its agents: names, schemas, what each needs.
 *
 * The rows are the tools of the contract, with the schemas that its agents know. A tool is listed
 * only if something carries it out: the memory of the workspace (palace.h), or a function that the
 * orchestrator has set.
 *
 * Memory   rows are constant.
 * Threads  any.
 * Source   contracts/crawbl.md 2.8.
 */
#ifndef WEIR_ORCHESTRATOR_MCP_TOOLS_H
#define WEIR_ORCHESTRATOR_MCP_TOOLS_H

#include "base/str.h"

enum orchestrator_tool {
    ORCHESTRATOR_SEND_PUSH_NOTIFICATION,
    ORCHESTRATOR_GET_USER_PROFILE,
    ORCHESTRATOR_GET_WORKSPACE_INFO,
    ORCHESTRATOR_LIST_CONVERSATIONS,
    ORCHESTRATOR_SEARCH_PAST_MESSAGES,
    ORCHESTRATOR_SEND_MESSAGE_TO_AGENT,
    ORCHESTRATOR_ASK_QUESTIONS,
    ORCHESTRATOR_MEMORY_STATUS,
    ORCHESTRATOR_MEMORY_LIST_WINGS,
    ORCHESTRATOR_MEMORY_GET_TAXONOMY,
    ORCHESTRATOR_MEMORY_LIST_ROOMS,
    ORCHESTRATOR_MEMORY_SEARCH,
    ORCHESTRATOR_MEMORY_ADD_DRAWER,
    ORCHESTRATOR_MEMORY_DELETE_DRAWER,
    ORCHESTRATOR_MEMORY_DIARY_WRITE,
    ORCHESTRATOR_MEMORY_DIARY_READ,
    ORCHESTRATOR_TOOL_COUNT,
};

struct orchestrator_tool_row {
    struct str name, description, input_schema;
    bool reads; /* it changes nothing */
    bool lasts; /* a call may take as long as a turn */
};

extern const struct orchestrator_tool_row orchestrator_tools[ORCHESTRATOR_TOOL_COUNT];

/* The tool of that name, or ORCHESTRATOR_TOOL_COUNT. */
enum orchestrator_tool orchestrator_tool_find(struct str name);

#endif
