/* contract: the agents over AG-UI, as a row of the table of contracts. A guest of the listener
 * "http".
 *
 *     POST /agui, /agui/{agent}
 *
 * Threads  as contract/contract.h says.
 */
#ifndef WEIR_CONTRACT_AGUI_CONTRACT_H
#define WEIR_CONTRACT_AGUI_CONTRACT_H

#include "contract/contract.h"

extern const struct contract agui_contract;
extern const struct setting_rows agui_rows; /* options.c */

#endif
