/* options: the settings of the orchestrator, as written in the configuration.
 *
 * Threads  read-only once loaded.
 */
#ifndef WEIR_ORCHESTRATOR_OPTIONS_H
#define WEIR_ORCHESTRATOR_OPTIONS_H

#include "config/setting.h"

enum orchestrator_driver {
    ORCHESTRATOR_FAKE,
    ORCHESTRATOR_ADDRESS,
    ORCHESTRATOR_CHILD,
    ORCHESTRATOR_KUBERNETES
};

/* The names of the drivers, as runtimes.h has them; ends with NULL. */
extern const char *const orchestrator_drivers[];

struct orchestrator_options {
    struct str listen;   /* empty: off */
    struct str database; /* a URL of PostgreSQL */
    struct str schema;   /* the search path; empty: the server's */
    bool gateway;        /* a gateway names the user in X-Firebase-UID */
    struct str key;      /* signs tokens for runtimes, and checks those of callers */
    enum orchestrator_driver driver;
    struct str address, command;
    struct {
        struct str url, namespace, token_file, ca_file, image, arguments, secret;
    } kubernetes;
    bool tls, per_turn;
    uint64_t start_ms, idle_ms, silence_ms, wait_ms, stale_ms;
    uint64_t turns;
    uint64_t connections, reads;
    struct str nats_open, nats_secret; /* read them with orchestrator_nats() */
};

extern const struct setting_rows orchestrator_rows;

/* The values in a config that was loaded with these rows; otherwise all zero. */
const struct orchestrator_options *orchestrator_options(const struct config *config);

/* The URL of the NATS server that usage is published to, which may hold a password; empty: off. */
struct str orchestrator_nats(const struct orchestrator_options *options);

/* False: a password stands in the setting that is printed. */
MUST_CHECK bool orchestrator_nats_check(const struct orchestrator_options *options,
                                        struct err *e);

#endif
