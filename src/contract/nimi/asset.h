/* asset: a model of a local connector, as the protocol tells it.
 *
 * Private to contract/nimi.
 *
 * Memory   texts are in the arena, or the connector's.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.13.
 */
#ifndef WEIR_CONTRACT_NIMI_ASSET_H
#define WEIR_CONTRACT_NIMI_ASSET_H

#include "contract/nimi/offered.h"

/* "local/NAME": the name that LOCAL requests use, whichever engine it is. */
struct str asset_id(struct str model, struct arena *arena);

/* The names of capabilities; returns how many there are. */
size_t asset_capabilities(const struct offered *const *offered, size_t count,
                          struct arena *arena, const struct str **ret);

struct nimi_local_asset_record asset_of(const struct nimi_connector *connector,
                                        struct str model, const struct offered_health *health,
                                        struct arena *arena);

#endif
