/* memory: the tools `memory_search`, `memory_list`, `memory_write` and `memory_delete`.
 *
 * The memories of agents in a workspace, in the same table that users see through the Memory
 * service (store/memory.h). The workspace is always the run's own; no argument names another.
 *
 *     memory_search {"query","limit","category"}   {"memories":[...],"more":false}
 *     memory_list   {"category","limit","offset"}  the same, newest change first
 *     memory_write  {"key","content","category"}   {"memory":{...}}
 *     memory_delete {"key"}                        {"deleted":2}
 *
 * Memory   the store is borrowed and must outlive the tools and their calls.
 * Threads  read-only once made; a call belongs to its loop, its query to the store's thread.
 * Source   checks.md K14, M6.
 */
#ifndef WEIR_TOOL_MEMORY_H
#define WEIR_TOOL_MEMORY_H

#include "store/store.h"
#include "tool/tool.h"

/* What one of the tools does. */
struct memory_deed;
extern const struct memory_deed memory_search_tool, memory_list_tool, memory_write_tool,
    memory_delete_tool;

/* The caller ends it with tool_free(). */
struct tool *memory_tool_new(const struct memory_deed *deed, struct store *store);

#endif
