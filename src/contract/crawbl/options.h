/* options: the settings of this contract, as written in the configuration.
 *
 * Threads  read-only once loaded.
 */
#ifndef WEIR_CONTRACT_CRAWBL_OPTIONS_H
#define WEIR_CONTRACT_CRAWBL_OPTIONS_H

#include "config/setting.h"
#include "session/leaving.h"
#include "wire/token.h"

/* A signing key with fewer bytes can be guessed. */
#define CRAWBL_KEY_MIN_BYTES 16

struct crawbl_options {
    struct str listen;            /* empty: off */
    struct str key, key_previous; /* the signing keys; empty: none */
    bool strict;                  /* refuse undated tokens (K1) */
    uint64_t token_window_ms;
    bool lenient, errors_as_text, sticky;
    struct leaving on_disconnect;
    struct str workspace, user; /* the only identity served; empty: any */
    struct str mcp_endpoint;    /* of the orchestrator; empty: none */
    bool blueprint;             /* ask it for the agents of each workspace, too */
    struct str orchestrator;    /* not asked; its presence marks a pod (pod.h) */
    struct str searxng;         /* search engine for agents of a blueprint; empty: none */
};

extern const struct setting_rows crawbl_rows;

/* Keys that verify as these options say, without a key yet. The caller ends them with
 * token_keys_free(). */
struct token_keys *crawbl_keys_new(const struct crawbl_options *options);

/* The values in a config that was loaded with these rows; otherwise all zero. */
const struct crawbl_options *crawbl_options(const struct config *config);

#endif
