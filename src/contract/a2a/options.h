/* options: the settings of this contract, a struct guest_options. Whether it is enabled is the
 * agent card's setting (config.h). */
#ifndef WEIR_CONTRACT_A2A_OPTIONS_H
#define WEIR_CONTRACT_A2A_OPTIONS_H

#include "config/config.h"

extern const struct setting_rows a2a_rows;

#endif
