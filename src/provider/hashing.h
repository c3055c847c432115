/* hashing: embed a text as a vector without a model.
 *
 * A hash assigns each word, and each group of three letters in it, to one of HASHING_DIMENSIONS
 * bins and a sign, plus or minus. The counts are then normalised to a vector of length 1. Texts
 * that share words or parts of words point in similar directions. Meaning is ignored: "car" is
 * as far from "automobile" as from "tree". Case matters only beyond ASCII. The same text gives
 * bit-identical numbers on every machine, because only integers are summed.
 *
 * Threads  any; values only.
 * Source   Weinberger et al., "Feature Hashing for Large Scale Multitask Learning" (2009);
 *          FNV-1a (Fowler, Noll, Vo); the finalizer of MurmurHash3 (Appleby).
 */
#ifndef WEIR_PROVIDER_HASHING_H
#define WEIR_PROVIDER_HASHING_H

#include "base/str.h"

#define HASHING_DIMENSIONS 256

/* False: `text` contains only white space. */
MUST_CHECK bool hashing_embed(struct str text, double ret[HASHING_DIMENSIONS]);

#endif
