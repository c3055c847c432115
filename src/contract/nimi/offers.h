/* offers: what can be asked here, and whether a call would wait.
 *
 * Memory   borrows the instance.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.5.
 */
#ifndef WEIR_CONTRACT_NIMI_OFFERS_H
#define WEIR_CONTRACT_NIMI_OFFERS_H

#include "contract/nimi/call.h"

nimi_begin_fn offers_list_profiles, offers_peek_scheduling;

#endif
