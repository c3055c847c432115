/* options: the settings of this contract.
 *
 * Memory   texts live as long as the config.
 * Threads  read-only.
 */
#ifndef WEIR_CONTRACT_OPENAI_OPTIONS_H
#define WEIR_CONTRACT_OPENAI_OPTIONS_H

#include "contract/guest.h"

struct openai_options {
    struct guest_options guest;
    bool media; /* embeddings and speech are served */
};

extern const struct setting_rows openai_rows;

const struct openai_options *openai_options(const struct config *config);

#endif
