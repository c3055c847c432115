/* converse: what the checks of Converse and Memory share.
 *
 * A scene is one Converse stream: its requests, and what came back. It is played when the first
 * check asks for it, and kept for all others. Two scenes that got no end in time are enough: the
 * others are not played then.
 *
 * Memory   the world owns the scenes until converse_close().
 * Threads  the main thread; converse_scene() blocks.
 * Source   contracts/crawbl.md 1.3, 2, 3; checks.md K1, K7, K8, K15, K17, K21, K30, K36.
 */
#ifndef WEIR_VALIDATE_CONVERSE_H
#define WEIR_VALIDATE_CONVERSE_H

#include "proto/runtime.pb.h"
#include "validate/talk.h"
#include "validate/validate.h"
#include "wire/token.h"

enum scene_id {
    SCENE_TURNS,       /* two turns, one after the other; then the end */
    SCENE_HALF_CLOSED, /* one turn, no more requests announced at once */
    SCENE_AT_ONCE,     /* two requests together */
    SCENE_LEFT,        /* hung up at the first event */
    SCENE_AFTER_LEFT,
    SCENE_FAILS, /* the error input; from here on a good turn follows on the same stream */
    SCENE_NO_MESSAGE,
    SCENE_NO_SESSION,
    SCENE_NO_AGENT,
    SCENE_NO_IDS,
    SCENE_OTHER_WORKSPACE,
    SCENE_NO_TOKEN, /* from here on: how the call is authenticated */
    SCENE_GARBAGE,
    SCENE_FORGED,
    SCENE_EXPIRED,
    SCENE_FUTURE,
    SCENE_OTHER_SCHEME,
    SCENE_LOWER_CASE,
    SCENE_TWO_TOKENS,
    SCENE_COUNT,
};

#define SCENE_TURNS_MAX 2

struct scene {
    struct talk talk;
    const struct crawbl_converse_event *events; /* decoded */
    size_t count;
    bool undecodable, not_played;
    size_t began[SCENE_TURNS_MAX]; /* how many events there were when each request was sent */
    size_t requests;
};

/* The events from a request up to its DoneEvent, or to the end. Not of SCENE_AT_ONCE, where
 * both requests began together. */
struct turn_events {
    const struct crawbl_converse_event *at;
    size_t count;
    const struct crawbl_done_event *done; /* NULL: there is none */
};

struct converse {
    struct target *target;
    const struct validate_options *options;
    struct token_keys *keys, *other_keys; /* NULL: no signing key is known */
    struct buf message, error_message;    /* text, from the options */
    struct scene scenes[SCENE_COUNT];
    bool played[SCENE_COUNT];
    unsigned silent;
    char session[32];
};

void *converse_open(struct target *target, const struct validate_options *options);
void converse_close(void *world);
bool converse_speaks(struct target *target, const struct validate_options *options);

struct converse *converse_of(const struct judge *judge);
const struct scene *converse_scene(struct judge *judge, enum scene_id id);
struct turn_events scene_turn(const struct scene *scene, size_t index);

/* Append a header value that authenticates as the user of the options; nothing when there is no
 * token. */
void converse_put_bearer(const struct converse *converse, struct buf *out);

/* Call a unary method; the caller ends *ret. authorization: the header's value, or empty. */
void converse_call(const struct converse *converse, const char *path, struct str authorization,
                   struct str message, struct talk *ret);

/* converse_checks.c */
check_fn check_turn_done, check_turn_one_done, check_turn_kinds, check_turn_usage,
    check_turn_tools, check_turn_json, check_turn_text, check_turn_speakers, check_turn_models,
    check_turn_reuse, check_turn_end, check_turn_half_close, check_turn_at_once,
    check_turn_left, check_failure_form, check_failure_message, check_failure_stream,
    check_failure_session, check_failure_agent, check_failure_ids, check_failure_workspace,
    check_token_missing, check_token_garbage, check_token_forged, check_token_expired,
    check_token_future, check_token_scheme, check_token_case, check_token_twice,
    check_token_health, check_token_unknown, check_token_memory;

/* converse_memory.c */
check_fn check_memory_create, check_memory_upsert, check_memory_list, check_memory_pages,
    check_memory_category, check_memory_key, check_memory_delete, check_memory_missing,
    check_memory_workspace, check_memory_no_workspace;

#endif
