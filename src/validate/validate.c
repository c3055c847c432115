#include "validate/validate.h"

#include "base/clock.h"
#include "base/nearest.h"

extern const struct profile profile_runtime_v1, profile_converse, profile_nimi;

const struct profile *const profiles[] = {&profile_runtime_v1, &profile_converse, &profile_nimi,
                                          NULL};

/* --- names -------------------------------------------------------------------------------------- */

const struct profile *profile_find(struct str name) {
    for (size_t i = 0; profiles[i]; i++) {
        if (str_equal(str_from(profiles[i]->name), name)) return profiles[i];
    }
    return NULL;
}

const struct check *check_find(struct str id, const struct profile **ret_profile) {
    for (size_t p = 0; profiles[p]; p++) {
        for (size_t i = 0; i < profiles[p]->count; i++) {
            if (!str_equal_nocase(str_from(profiles[p]->checks[i].id), id)) continue;
            *ret_profile = profiles[p];
            return &profiles[p]->checks[i];
        }
    }
    return NULL;
}

/* Whether `name` is the id, or its part before the last '-'. */
static bool is_named(struct str id, struct str name) {
    if (!name.len || id.len < name.len || !str_equal_nocase(str_head(id, name.len), name))
        return false;
    struct str rest = str_skip(id, name.len);
    return rest.len == 0 ||
           (rest.at[0] == '-' && str_find_byte(str_skip(rest, 1), '-') == rest.len - 1);
}

static bool list_has(struct str list, struct str id) {
    while (list.len) {
        struct str name = str_trim(str_split(list, ',', &list));
        if (is_named(id, name)) return true;
    }
    return false;
}

static bool validate_is_known(struct str name, struct nearest *nearest) {
    for (size_t p = 0; profiles[p]; p++) {
        for (size_t i = 0; i < profiles[p]->count; i++) {
            struct str id = str_from(profiles[p]->checks[i].id);
            if (is_named(id, name)) return true;
            nearest_offer(nearest, id);
        }
    }
    return false;
}

static bool list_check(struct str list, struct err *e) {
    while (list.len) {
        struct str name = str_trim(str_split(list, ',', &list));
        struct nearest nearest;
        nearest_init(&nearest, name);
        if (!validate_is_known(name, &nearest))
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "there is no check '" STR_FMT "'%s (--list shows them)",
                           STR_ARG(str_head(name, 100)), nearest_hint(&nearest));
    }
    return true;
}

bool selection_check(const struct selection *selection, struct err *e) {
    return list_check(selection->only, e) && list_check(selection->skip, e);
}

static bool is_selected(const struct selection *selection, const struct check *check) {
    struct str id = str_from(check->id);
    return (!selection->only.len || list_has(selection->only, id)) &&
           !list_has(selection->skip, id);
}

/* --- running ------------------------------------------------------------------------------------- */

struct run {
    struct target *target;
    const struct validate_options *options;
    const struct selection *selection;
    const struct report_sink *sink;
    void *ctx;
    struct validate_result *result;
};

static void run_check(const struct run *run, const struct check *check, void *world) {
    struct finding finding;
    struct judge judge = {run->options, &finding, world};
    finding_init(&finding, check);
    run->sink->on_check(check, run->ctx);
    uint64_t began_ms = clock_mono_ms();
    check->run(&judge);
    finding.took_ms = clock_mono_ms() - began_ms;
    run->result->verdicts[finding.verdict]++;
    run->sink->on_finding(&finding, run->ctx);
    finding_done(&finding);
}

/* False: it is not the target that was examined; *why says so. */
static bool run_profile(const struct run *run, const struct profile *profile, struct err *why) {
    void *world = profile->open(run->target, run->options);
    bool good = true;
    run->sink->on_profile(profile, run->ctx);
    for (size_t i = 0; good && i < profile->count; i++) {
        if (!is_selected(run->selection, &profile->checks[i])) continue;
        run_check(run, &profile->checks[i], world);
        good = !target_is_replaced(run->target, why);
    }
    profile->close(world);
    return good;
}

/* A server that takes connections is not unreachable, whatever it says then. */
static bool validate_is_there(const struct target *target) {
    return !target->ended && target->start.odd && target->start.odd_one.connected;
}

/* False: none of them, or not of the target; *why stays as it was, or says so. */
static bool run_profiles(const struct run *run, const struct profile *named, bool booted,
                         struct err *why) {
    size_t ran = 0;
    for (size_t i = 0; profiles[i]; i++) {
        const struct profile *profile = profiles[i];
        if (named ? profile != named : !profile->probe(run->target, run->options)) continue;
        if (!run_profile(run, profile, why)) return false;
        ran++;
    }
    if (ran || !booted) return ran;
    if (target_is_replaced(run->target, why)) return false;
    return err_set(why, ERR_UNAVAILABLE,
                   "the target speaks no contract that is known here; name one with --profile");
}

void validate_run(const struct target_options *target_options,
                  const struct validate_options *options, const struct profile *named,
                  const struct selection *selection, const struct report_sink *sink, void *ctx,
                  struct validate_result *ret) {
    struct asker asker;
    struct target target;
    *ret = (struct validate_result){.unreachable = false};
    asker_init(&asker);
    asker_hide(&asker, options->token);
    asker_hide(&asker, options->signing_key);
    ret->unreachable = !target_open(target_options, &asker, &target, &ret->why);
    if (!ret->unreachable) {
        struct run run = {&target, options, selection, sink, ctx, ret};
        bool booted = target_boot(&target, &(struct target_boot){.open = false}, &ret->why);
        ret->unreachable = !(booted || validate_is_there(&target)) ||
                           !run_profiles(&run, named, booted, &ret->why);
        target_done(&target);
    }
    asker_done(&asker);
}
