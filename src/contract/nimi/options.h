/* options: the settings of this contract, as written in the configuration.
 *
 * Threads  read-only once loaded.
 */
#ifndef WEIR_CONTRACT_NIMI_OPTIONS_H
#define WEIR_CONTRACT_NIMI_OPTIONS_H

#include "config/setting.h"

struct nimi_options {
    struct str grpc, http;         /* listen addresses; empty: off */
    bool allow_loopback;           /* plain http to a provider on this machine */
    uint64_t probe_ms;             /* between two probes of a provider; 0: none */
    uint64_t slots, slots_per_app; /* 0: no limit */
    bool require_token;            /* of every caller, except for what is open to all */
    uint64_t token_skew_ms;        /* how much clocks may differ */
    uint64_t keys_refresh_ms, keys_pause_ms;
    uint64_t slots_background; /* 0: three quarters of the slots */
    uint64_t queue_per_app;
    uint64_t realtime_idle_ms;    /* 0: realtime sessions never end by themselves */
    uint64_t transfer_silence_ms; /* of a server that downloads; 0: no limit */
    struct str weights;           /* "app=2, other=3" */
};

extern const struct setting_rows nimi_rows;

/* The values in a config that was loaded with these rows; otherwise all zero. */
const struct nimi_options *nimi_options(const struct config *config);

/* Check what the schema cannot: the weights.
 * errors  ERR_INVALID_ARGUMENT names the entry */
MUST_CHECK bool nimi_options_check(const struct nimi_options *options, struct err *e);

/* The weight of an app: 1 unless it is set. */
unsigned nimi_options_weight(const struct nimi_options *options, struct str app);

#endif
