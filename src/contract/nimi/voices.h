/* voices: list the voices a model can speak with.
 *
 * They are the voices of the media interface of the model's connector. A model that cannot
 * speak has none. The headers give their number, their source and the version of the list,
 * which changes when a voice is added or removed.
 *
 * Memory   the answer borrows from the media interface.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.5, 5.
 */
#ifndef WEIR_CONTRACT_NIMI_VOICES_H
#define WEIR_CONTRACT_NIMI_VOICES_H

#include "contract/nimi/call.h"

nimi_begin_fn voices_list;

#endif
