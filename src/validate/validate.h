/* validate: check a target against contracts.
 *
 * A profile is one contract. validate_run() goes through the checks of the profiles, in order,
 * and reports each finding as soon as there is one.
 *
 *     open the target ─▶ boot ─▶ each profile: open ─▶ check, check, ... ─▶ close
 *
 * Memory   see each function.
 * Threads  the main thread; validate_run() blocks.
 */
#ifndef WEIR_VALIDATE_VALIDATE_H
#define WEIR_VALIDATE_VALIDATE_H

#include "validate/target.h"

struct profile {
    const char *name;    /* "runtime-v1" */
    const char *against; /* what it checks, for people */
    const struct check *checks;
    size_t count;
    bool is_http; /* a started target is up when its /health says so */
    /* What the checks share. Never NULL. */
    void *(*open)(struct target *target, const struct validate_options *options);
    void (*close)(void *world);
    /* Whether the target speaks this contract. */
    bool (*probe)(struct target *target, const struct validate_options *options);
};

extern const struct profile *const profiles[]; /* ends with NULL */

/* The profile of that name, or NULL. */
const struct profile *profile_find(struct str name);

/* A check of any profile, or NULL. */
const struct check *check_find(struct str id, const struct profile **ret_profile);

/* Which checks: ids ("HLTH-01") or groups ("HLTH"), separated by commas; empty: all, none. */
struct selection {
    struct str only, skip;
};

/* errors  ERR_INVALID_ARGUMENT a name that is neither */
MUST_CHECK bool selection_check(const struct selection *selection, struct err *e);

struct report_sink {
    void (*on_profile)(const struct profile *profile, void *ctx);
    void (*on_check)(const struct check *check, void *ctx); /* before it runs */
    void (*on_finding)(const struct finding *finding, void *ctx);
};

struct validate_result {
    size_t verdicts[VERDICT_COUNT];
    bool unreachable; /* no profile could be checked */
    struct err why;   /* ... because of this */
};

/* named: the profiles to check; empty: those that the target speaks. */
void validate_run(const struct target_options *target_options,
                  const struct validate_options *options, const struct profile *named,
                  const struct selection *selection, const struct report_sink *sink, void *ctx,
                  struct validate_result *ret);

#endif
