/* options_lists: the settings of the sidecar that are lists and maps.
 *
 * Private to sidecar/.
 *
 * Threads  as options.h.
 * Source   contracts/agentbreeder.md 4.2 and 4.5.
 */
#ifndef WEIR_SIDECAR_OPTIONS_LISTS_H
#define WEIR_SIDECAR_OPTIONS_LISTS_H

#include "sidecar/options.h"
#include "wire/yaml.h"

/* Read one key of the file: guardrails, a2a_peers, mcp_servers, otlp_headers or prices.
 * ret_known: false: it is none of these, and nothing was read.
 * errors  ERR_INVALID_ARGUMENT, with its place */
MUST_CHECK bool sidecar_read_list(struct sidecar_options *options, const struct yaml *node,
                                  bool *ret_known, struct err *e);

/* The variables: "k=v,k=v", and a JSON object of MCP servers, which replaces those of the same
 * name. JSON that cannot be read is ignored with a warning, as the published sidecar does.
 * errors  ERR_INVALID_ARGUMENT what is wrong with a server */
MUST_CHECK bool sidecar_read_headers(struct sidecar_options *options, struct str text,
                                     struct err *e);
MUST_CHECK bool sidecar_read_tools(struct sidecar_options *options, struct str text,
                                   struct err *e);

void sidecar_lists_help(struct buf *out);

#endif
