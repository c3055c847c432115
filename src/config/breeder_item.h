/* breeder_item: one reference of an agent.yaml, and what it names here. Private to config/.
 *
 * Memory   the arena of the config.
 */
#ifndef WEIR_CONFIG_BREEDER_ITEM_H
#define WEIR_CONFIG_BREEDER_ITEM_H

#include "config/breeder.h"
#include "wire/json.h"

/* A tool, a knowledge base or an MCP server, as written in the file. */
struct breeder_item {
    const char *what;
    struct str ref, name, description, schema;
    bool asks;
    const struct yaml *at;
};

enum breeder_list { BREEDER_TOOL, BREEDER_SERVER, BREEDER_KNOWLEDGE, BREEDER_SUBAGENT };

/* Check the items of a list of the file.
 * errors  no list of maps; an unknown key (in a tool a warning, unless it looks like a known
 *         one); a value that upstream's schema does not allow */
MUST_CHECK bool breeder_check_items(struct config *config, const struct yaml *list,
                                    enum breeder_list which, struct err *e);

/* Check a tool of AGENT_TOOLS_JSON for keys that were meant to be others.
 * errors  one looks like a key that there is */
MUST_CHECK bool breeder_check_json(struct json tool, struct err *e);

/* Whether a tool that was checked asks a person before each call. `approval` is a boolean in any
 * of YAML's words, "required", or a map, which asks unless it has `require: false`. */
bool breeder_asks(const struct yaml *tool);

/* The same for a tool of AGENT_TOOLS_JSON.
 * errors  neither a boolean nor such a map */
MUST_CHECK bool breeder_asks_json(struct json tool, bool *ret, struct err *e);

/* The names to look for, in upstream's order. Returns their number. */
size_t breeder_candidates(const struct breeder_item *item, struct str ret[3]);

/* "zendesk-mcp" and "mcp-zendesk" name the server zendesk. */
struct str breeder_bare_server(struct str name);

/* The server of the section mcp that the item names, or NULL. */
const struct config_mcp *breeder_find_server(const struct config *config,
                                             const struct breeder_item *item);

/* Set ret->name to the pattern of all tools of the server.
 * errors  the server is for other agents */
MUST_CHECK bool breeder_take_server(struct config *config, const struct config_mcp *server,
                                    const struct config_agent *agent,
                                    struct config_agent_tool *ret, struct err *e);

/* Find the tool that the item names. ret->name stays empty if the tool is left out.
 * errors  no such tool here, with the lines that would add it */
MUST_CHECK bool breeder_find_tool(struct config *config, const struct config_input *input,
                                  const struct config_agent *agent,
                                  const struct breeder_item *item,
                                  struct config_agent_tool *ret, struct err *e);

/* Where a missing line must be added, for messages. */
const char *breeder_where(const struct config *config);

#endif
