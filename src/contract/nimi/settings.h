/* settings: what the configuration says, as this contract wants it.
 *
 * Threads  any; it only reads the configuration.
 */
#ifndef WEIR_CONTRACT_NIMI_SETTINGS_H
#define WEIR_CONTRACT_NIMI_SETTINGS_H

#include "contract/nimi/nimi.h"

struct config;
struct team;

/* With the connectors that the configuration lists; without any, whoever answers for the first
 * agent serves local models, and this machine speaks and makes vectors. Both are borrowed. End
 * it with nimi_settings_done(). */
void nimi_settings_init(struct nimi_settings *ret, const struct config *config,
                        const struct team *team);
void nimi_settings_done(struct nimi_settings *settings);

#endif
