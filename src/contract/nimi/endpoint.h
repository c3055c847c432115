/* endpoint: whether a provider may be asked at this address.
 *
 * https to anywhere; http to this machine alone, and only where the operator allows it; never
 * link-local (where clouds keep their machines' credentials) nor private IPv6 addresses. Here
 * stands what the URL itself says; the address that a name turns out to have is judged when it
 * is dialled (client/).
 *
 * Memory   none.
 * Threads  any.
 * Source   contracts/nimi.md 3.3 "Endpoint rule (K-SEC)".
 */
#ifndef WEIR_CONTRACT_NIMI_ENDPOINT_H
#define WEIR_CONTRACT_NIMI_ENDPOINT_H

#include "base/str.h"

enum endpoint_near { ENDPOINT_FAR_ONLY, ENDPOINT_LOOPBACK_TOO };

bool endpoint_is_safe(struct str url, enum endpoint_near near);

#endif
