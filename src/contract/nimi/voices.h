/* voices: which ones a model can be asked to speak in.
 *
 * Those of the media of the connector that has the model; a model that does not speak has none.
 * The headers say how many they are, whose, and which list it is: its version changes when a
 * voice comes or goes.
 *
 * Memory   what is answered borrows from the media.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.5, 5.
 */
#ifndef WEIR_CONTRACT_NIMI_VOICES_H
#define WEIR_CONTRACT_NIMI_VOICES_H

#include "contract/nimi/call.h"

nimi_begin_fn voices_list;

#endif
