/* options: the settings of this contract, as written in the configuration.
 *
 * Threads  read-only once loaded.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_OPTIONS_H
#define WEIR_CONTRACT_AGENTBREEDER_OPTIONS_H

#include "config/setting.h"
#include "conversation/import.h"
#include "route/page.h"
#include "session/leaving.h"

struct agentbreeder_options {
    struct str listen;    /* empty: off */
    struct str token;     /* of all callers; empty: none is required */
    struct str workspace; /* of all callers (K23) */
    struct leaving on_disconnect;
    enum brought_policy history; /* how a caller's message list relates to its session (K31) */
    struct page_list hosts, origins; /* checked where no token is required (K6) */
    bool sidecar;                    /* a sidecar is in front: accept any Host */
};

extern const struct setting_rows agentbreeder_rows;

/* The values in a config that was loaded with these rows; otherwise all zero. */
const struct agentbreeder_options *agentbreeder_options(const struct config *config);

#endif
