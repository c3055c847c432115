/* options: the settings of this contract.
 *
 * Memory   texts live as long as the config.
 * Threads  read-only.
 */
#ifndef WEIR_CONTRACT_ANTHROPIC_OPTIONS_H
#define WEIR_CONTRACT_ANTHROPIC_OPTIONS_H

#include "config/config.h"
#include "session/leaving.h"

struct anthropic_options {
    bool enabled;
    struct str workspace; /* of callers without a token */
    struct leaving on_disconnect;
};

extern const struct setting_rows anthropic_rows;

const struct anthropic_options *anthropic_options(const struct config *config);

#endif
