/* consent: whether a person's words are a yes.
 *
 * Words count, not their order, and one no wins: "yes please" and {"approved":true} are, "no",
 * "do not approve" and words that say neither are not.
 *
 * Threads  none; values only.
 */
#ifndef WEIR_WIRE_CONSENT_H
#define WEIR_WIRE_CONSENT_H

#include "base/str.h"

bool consent_given(struct str words);

#endif
