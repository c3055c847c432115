/* runtime: what the checks of the Runtime Contract share.
 *
 * A probe is one request of a table. It is sent when the first check asks for it, and its reply
 * is kept for all others, so a validation costs an agent few turns. A path that did not answer
 * twice is not asked again: a server that hangs gets its verdicts in bounded time.
 *
 * Memory   the world owns all replies until runtime_close().
 * Threads  the main thread; runtime_probe() blocks.
 * Source   contracts/agentbreeder.md 7.2.
 */
#ifndef WEIR_VALIDATE_RUNTIME_H
#define WEIR_VALIDATE_RUNTIME_H

#include "validate/validate.h"

enum probe {
    PROBE_HEALTH,
    PROBE_HEALTH_WRONG_TOKEN,
    PROBE_HEALTH_VERSION_2,
    PROBE_OPENAPI,
    PROBE_CARD,

    PROBE_INVOKE_NO_TOKEN,
    PROBE_INVOKE_WRONG_TOKEN,
    PROBE_INVOKE_EMPTY_TOKEN,
    PROBE_INVOKE_BASIC,
    PROBE_INVOKE_TOKEN_HEAD,
    PROBE_INVOKE_TOKEN_TAIL,
    PROBE_INVOKE_TOKEN_TWICE,
    PROBE_STREAM_NO_TOKEN,
    PROBE_STREAM_WRONG_TOKEN,
    PROBE_STREAM_EMPTY_TOKEN,
    PROBE_STREAM_BASIC,
    PROBE_RESUME_NO_TOKEN,
    PROBE_RESUME_WRONG_TOKEN,
    PROBE_RESUME_EMPTY_TOKEN,
    PROBE_RESUME_BASIC,

    PROBE_INVOKE,        /* the input of the options */
    PROBE_INVOKE_AGAIN,  /* the same; neither names a session */
    PROBE_INVOKE_STRING, /* the same again when that input is a string */
    PROBE_INVOKE_OBJECT,
    PROBE_INVOKE_ARRAY,
    PROBE_INVOKE_SESSION,
    PROBE_INVOKE_SESSION_HEADER,
    PROBE_INVOKE_SESSION_BOTH,
    PROBE_INVOKE_EXTRAS,
    PROBE_INVOKE_UNICODE,
    PROBE_INVOKE_NUL,
    PROBE_INVOKE_LONG,
    PROBE_INVOKE_ERROR,
    PROBE_INVOKE_HITL,
    PROBE_INVOKE_VERSION_1,
    PROBE_INVOKE_VERSION_2,
    PROBE_INVOKE_TRACED,
    PROBE_INVOKE_KEPT,
    PROBE_INVOKE_REUSED,
    PROBE_INVOKE_CHUNKED,
    PROBE_INVOKE_EXPECT,

    PROBE_BAD_JSON,
    PROBE_NO_INPUT,
    PROBE_WRONG_TYPE,
    PROBE_TEXT_PLAIN,
    PROBE_NO_PATH,
    PROBE_NO_METHOD,

    PROBE_STREAM,
    PROBE_STREAM_BAD_JSON,
    PROBE_STREAM_ERROR,
    PROBE_STREAM_VERSION_2,
    PROBE_STREAM_LEFT,

    PROBE_RESUME_EMPTY,
    PROBE_RESUME_UNKNOWN,

    PROBE_COUNT,
};

#define RUNTIME_SESSION_BYTES 32

struct runtime {
    struct target *target;
    const struct validate_options *options;
    struct reply replies[PROBE_COUNT];
    bool asked[PROBE_COUNT];
    unsigned silent[4]; /* by path: how often it did not answer */
    char session[RUNTIME_SESSION_BYTES], other_session[RUNTIME_SESSION_BYTES];
};

/* For the profile. */
void *runtime_open(struct target *target, const struct validate_options *options);
void runtime_close(void *world);
bool runtime_speaks(struct target *target, const struct validate_options *options);

struct runtime *runtime_of(const struct judge *judge);

/* The reply to a probe. */
const struct reply *runtime_probe(struct judge *judge, enum probe probe);

/* Ask something that is in no table; the caller ends *ret. `url`: of the server. */
void runtime_ask(struct runtime *runtime, const struct question *question, struct reply *ret);

/* Ask /health, to see whether the server is still alive. */
void runtime_ask_health(struct runtime *runtime, struct reply *ret);

/* Its bearer field, as a header line. */
void runtime_put_bearer(struct str token, struct buf *out);

/* Walk over the replies so far, from *at = 0. NULL: no more. */
const struct reply *runtime_next_reply(const struct runtime *runtime, size_t *at,
                                       enum probe *ret_probe);

bool probe_is_stream(enum probe probe);

/* Whether /invoke does not refuse the token; else the check is skipped, because AUTH-06 says so
 * already. */
bool runtime_lets_in(struct judge *judge);

/* Whether /invoke answers its usual input with 200 and JSON; else the check is skipped, because
 * INVK-01 and INVK-02 say so already. */
bool runtime_invokes(struct judge *judge);

/* --- the checks ---------------------------------------------------------------------------- */

/* runtime_health.c */
check_fn check_boot_answers, check_boot_quiet, check_boot_port, check_health_200,
    check_health_shape, check_health_names, check_health_not_ok, check_health_open,
    check_health_optional, check_health_version, check_loading_503, check_loading_retry,
    check_openapi, check_openapi_version, check_openapi_paths, check_card, check_card_agrees;

/* runtime_auth.c */
check_fn check_auth_missing, check_auth_missing_resume, check_auth_wrong, check_auth_empty,
    check_auth_basic, check_auth_right, check_auth_bodies, check_auth_open, check_auth_strange;

/* runtime_invoke.c */
check_fn check_invoke_string, check_invoke_output, check_invoke_object, check_invoke_shape,
    check_invoke_echo, check_invoke_generates, check_invoke_header, check_invoke_reserved,
    check_invoke_extras, check_invoke_extremes, check_invoke_mirrors;

/* runtime_errors.c */
check_fn check_error_json, check_error_missing, check_error_types, check_error_media,
    check_error_envelope, check_error_500, check_error_routes, check_error_statuses,
    check_resume_empty, check_resume_unknown, check_resume_shape, check_resume_envelope,
    check_resume_hitl;

/* runtime_stream.c */
check_fn check_stream_type, check_stream_grammar, check_stream_done, check_stream_data,
    check_stream_delta, check_stream_named, check_stream_cache, check_stream_buffering,
    check_stream_failed, check_stream_refusals, check_stream_flow, check_stream_left,
    check_stream_agrees;

/* runtime_headers.c */
check_fn check_version_good, check_version_bad, check_version_choice, check_media_types,
    check_http_manners, check_sidecar_fields, check_sidecar_quiet, check_rotation;

#endif
