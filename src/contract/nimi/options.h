/* options: the settings of this contract, as the operator writes them.
 *
 * Where it listens stands among the daemon's (config.h), beside the other listeners.
 *
 * Threads  read-only once loaded.
 */
#ifndef WEIR_CONTRACT_NIMI_OPTIONS_H
#define WEIR_CONTRACT_NIMI_OPTIONS_H

#include "config/setting.h"

struct nimi_options {
    bool allow_loopback;           /* plain http to a provider on this machine */
    uint64_t probe_ms;             /* between two probes of a provider; 0: none */
    uint64_t slots, slots_per_app; /* 0: no limit */
};

extern const struct setting_rows nimi_rows;

/* Those of a config that has the rows; else all zero. */
const struct nimi_options *nimi_options(const struct config *config);

#endif
