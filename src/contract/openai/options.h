/* options: the settings of this contract.
 *
 * Memory   texts live as long as the config.
 * Threads  read-only.
 */
#ifndef WEIR_CONTRACT_OPENAI_OPTIONS_H
#define WEIR_CONTRACT_OPENAI_OPTIONS_H

#include "config/config.h"
#include "session/leaving.h"

struct openai_options {
    bool enabled;
    bool media;           /* embeddings and speech are served */
    struct str workspace; /* of callers without a token */
    struct leaving on_disconnect;
};

extern const struct setting_rows openai_rows;

const struct openai_options *openai_options(const struct config *config);

#endif
