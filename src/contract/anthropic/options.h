/* options: the settings of this contract, a struct guest_options. */
#ifndef WEIR_CONTRACT_ANTHROPIC_OPTIONS_H
#define WEIR_CONTRACT_ANTHROPIC_OPTIONS_H

#include "config/config.h"

extern const struct setting_rows anthropic_rows;

#endif
