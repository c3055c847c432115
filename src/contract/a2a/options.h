/* options: the settings of this contract. Whether it is on, and where others reach this program, are
 * in the core's (config->agent): the Runtime Contract's card says it, too.
 *
 * Memory   texts live as long as the config.
 * Threads  read-only.
 */
#ifndef WEIR_CONTRACT_A2A_OPTIONS_H
#define WEIR_CONTRACT_A2A_OPTIONS_H

#include "config/config.h"
#include "session/leaving.h"

struct a2a_options {
    struct str workspace; /* of callers without a token */
    struct leaving on_disconnect;
};

extern const struct setting_rows a2a_rows;

const struct a2a_options *a2a_options(const struct config *config);

#endif
