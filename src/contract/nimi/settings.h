/* settings: derive this contract's settings from the configuration.
 *
 * Threads  any; it only reads the configuration.
 */
#ifndef WEIR_CONTRACT_NIMI_SETTINGS_H
#define WEIR_CONTRACT_NIMI_SETTINGS_H

#include "contract/nimi/nimi.h"

struct config;
struct team;

/* Use the configured connectors. If there are none, the provider of the first agent serves
 * local models, and this machine does speech and embeddings. `config` and `team` are borrowed.
 * End the result with nimi_settings_done(). */
void nimi_settings_init(struct nimi_settings *ret, const struct config *config,
                        const struct team *team);

/* Read the issuers of tokens, if there are any. Blocks: it loads OpenSSL.
 * errors  those of issuers_new() */
MUST_CHECK bool nimi_settings_trust(struct nimi_settings *settings, const struct config *config,
                                    struct err *e);
void nimi_settings_done(struct nimi_settings *settings);

#endif
