/* contract: nimi.runtime.v1 as a row of the table of contracts. The listeners "nimi_grpc" and
 * "nimi_http" are its own; it is off when neither has an address.
 *
 * Threads  as contract/contract.h says.
 */
#ifndef WEIR_CONTRACT_NIMI_CONTRACT_H
#define WEIR_CONTRACT_NIMI_CONTRACT_H

#include "contract/contract.h"

extern const struct contract nimi_contract; /* its settings are a struct nimi_settings */

#endif
