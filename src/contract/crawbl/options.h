/* options: the settings of this contract, as written in the configuration.
 *
 * The orchestrator's endpoints, the blueprint and the signing keys are among the daemon's
 * settings (config.h), because config/, the team and commands read them, too.
 *
 * Threads  read-only once loaded.
 */
#ifndef WEIR_CONTRACT_CRAWBL_OPTIONS_H
#define WEIR_CONTRACT_CRAWBL_OPTIONS_H

#include "config/setting.h"
#include "session/leaving.h"

struct crawbl_options {
    bool lenient, errors_as_text, sticky;
    struct leaving on_disconnect;
    struct str workspace, user; /* the only identity served; empty: any */
};

extern const struct setting_rows crawbl_rows;

/* The values in a config that was loaded with these rows; otherwise all zero. */
const struct crawbl_options *crawbl_options(const struct config *config);

#endif
