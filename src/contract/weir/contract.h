/* contract: our own routes as a row of the table of contracts. They are served as guests on the
 * listener "http".
 *
 * Threads  as contract/contract.h says.
 */
#ifndef WEIR_CONTRACT_WEIR_CONTRACT_H
#define WEIR_CONTRACT_WEIR_CONTRACT_H

#include "contract/weir/api.h"

extern const struct contract weir_contract; /* its settings are a struct api_settings */

#endif
