/* judge: what a check gives its verdict with.
 *
 * A check starts as passed. The first break or skip decides; what follows changes nothing, so a
 * check can go on after it without asking. A remark (judge_warn) is a warning that a later break
 * replaces.
 *
 *     const struct reply *reply = runtime_probe(judge, PROBE_HEALTH);
 *     if (judge_answered(judge, reply)) judge_status(judge, reply, 200);
 *
 * Memory   borrows the options and the finding.
 * Threads  none.
 */
#ifndef WEIR_VALIDATE_JUDGE_H
#define WEIR_VALIDATE_JUDGE_H

#include "validate/check.h"

/* What a person asked `weir validate` for. All texts are borrowed. */
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

/* One question and its answer as people are shown them, with escapes. */
struct evidence {
    struct str sent, seen;
};

struct judge {
    const struct validate_options *options;
    struct finding *finding;
    void *world; /* of the profile: what was asked and answered so far */
};

/* The statement is broken. `format` says what was expected and what was found. Returns false. */
PRINTF_LIKE(3, 4)
bool judge_break(struct judge *judge, const struct evidence *evidence, const char *format, ...);

/* It holds, but not as it should. Returns true. */
PRINTF_LIKE(3, 4)
bool judge_warn(struct judge *judge, const struct evidence *evidence, const char *format, ...);

/* It cannot be judged. Returns false. */
PRINTF_LIKE(2, 3) bool judge_skip(struct judge *judge, const char *format, ...);

/* Whether the check was broken or skipped already. */
bool judge_is_settled(const struct judge *judge);

/* Append `bytes` as text for people: control bytes and what is not UTF-8 as \xNN, `\n` kept,
 * known and likely secrets as ***. Cut at the limit of the buffer, with a mark. */
void evidence_append(struct buf *out, struct str bytes, const struct str *secrets,
                     size_t secret_count);

#endif
