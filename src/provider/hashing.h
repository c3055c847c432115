/* hashing: a text as a vector, without a model.
 *
 * Its words, and the groups of three letters in them, are counted in HASHING_DIMENSIONS bins
 * that a hash chooses, half of them downwards; then the vector is made as long as 1. Two texts
 * that share words, or parts of words, point in similar directions. That is all: what words
 * mean is not known, and "car" is as far from "automobile" as from "tree". Case counts only
 * beyond ASCII. The same text gives the same numbers on every machine, to the last bit: all
 * that is added up is whole.
 *
 * Threads  any; values only.
 * Source   Weinberger et al., "Feature Hashing for Large Scale Multitask Learning" (2009);
 *          FNV-1a (Fowler, Noll, Vo); the finalizer of MurmurHash3 (Appleby).
 */
#ifndef WEIR_PROVIDER_HASHING_H
#define WEIR_PROVIDER_HASHING_H

#include "base/str.h"

#define HASHING_DIMENSIONS 256

/* False: there is nothing in `text` but white space. */
MUST_CHECK bool hashing_embed(struct str text, double ret[HASHING_DIMENSIONS]);

#endif
