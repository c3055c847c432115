/* calls: RuntimeGrantService.
 *
 * An app asks for tokens on behalf of a user who consented, passes parts of them on, and lets
 * the runtime say whether one is still good. What a token is good for: use.h.
 *
 * Memory   of the call.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.1, 3.9.
 */
#ifndef WEIR_CONTRACT_NIMI_GRANT_CALLS_H
#define WEIR_CONTRACT_NIMI_GRANT_CALLS_H

#include "contract/nimi/call.h"

nimi_begin_fn grant_authorize, grant_validate, grant_revoke, grant_delegate, grant_list_chain;

#endif
