/* endpoint: check whether requests may be sent to a provider at this URL.
 *
 * https may go anywhere. http may go only to this machine, and only if the operator allows it.
 * Link-local addresses (where clouds serve machine credentials) and private IPv6 addresses are
 * never allowed. This module checks the URL itself; the address that a name resolves to is
 * checked when it is dialled (client/).
 *
 * Memory   none.
 * Threads  any.
 * Source   contracts/nimi.md 3.3 "Endpoint rule (K-SEC)".
 */
#ifndef WEIR_CONTRACT_NIMI_ENDPOINT_H
#define WEIR_CONTRACT_NIMI_ENDPOINT_H

#include "base/str.h"

enum endpoint_near { ENDPOINT_FAR_ONLY, ENDPOINT_LOOPBACK_TOO };

/* The URL as callers may see it: without user and password, query and fragment. Empty if it has
 * a user. */
struct str endpoint_shown(struct str url);

bool endpoint_is_safe(struct str url, enum endpoint_near near);

#endif
