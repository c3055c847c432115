/* options: the settings of this contract, as written in the configuration.
 *
 * Its listen addresses are among the daemon's settings (config.h), with the other listeners.
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

/* The values in a config that was loaded with these rows; otherwise all zero. */
const struct nimi_options *nimi_options(const struct config *config);

#endif
