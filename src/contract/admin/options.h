/* options: the settings of the operator's listener. */
#ifndef WEIR_CONTRACT_ADMIN_OPTIONS_H
#define WEIR_CONTRACT_ADMIN_OPTIONS_H

#include "config/config.h"

struct admin_options {
    struct str address; /* empty: off */
};

extern const struct setting_rows admin_rows;

const struct admin_options *admin_options(const struct config *config);

#endif
