/* options: what a person asked `weir validate` for. All texts are borrowed. */
#ifndef WEIR_VALIDATE_OPTIONS_H
#define WEIR_VALIDATE_OPTIONS_H

#include "base/str.h"

/* A JSON value, and whether there is one. */
struct validate_options {
    struct str token;       /* bearer, or a token of Converse; empty: none */
    struct str signing_key; /* of Converse's tokens; empty: none */
    struct str user, workspace;
    struct str model;       /* of nimi.runtime.v1; empty: one that the server lists */
    struct str input;       /* JSON: what agents are asked, by default "ping" */
    struct str error_input; /* JSON: makes the agent fail; empty: not given */
    struct str hitl_input;  /* JSON: makes the agent ask a human; empty: not given */
    bool strict;
    bool no_auth_probe;
    bool behind_sidecar;
    bool behind_proxy; /* also when behind_sidecar */
    uint64_t timeout_ms, boot_timeout_ms;
};

#endif
