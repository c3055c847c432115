/* options: the settings of this contract, as written in the configuration.
 *
 * What an orchestrator gives a workspace (the ids it serves, its MCP endpoint, its blueprint)
 * and the signing keys are among the daemon's settings (config.h): others read them, too.
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
};

extern const struct setting_rows crawbl_rows;

/* The values in a config that was loaded with these rows; otherwise all zero. */
const struct crawbl_options *crawbl_options(const struct config *config);

#endif
