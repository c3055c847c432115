#include "session/decision.h"

#include "schema/schema.h"
#include "wire/json_unique.h"

static const char *const names[] = {[DECISION_NONE] = "",
                                    [DECISION_APPROVE] = "approve",
                                    [DECISION_REFUSE] = "refuse",
                                    [DECISION_EDIT] = "edit"};

struct str decision_name(enum decision_kind kind) {
    return str_from(names[kind]);
}

/* --- JSON --------------------------------------------------------------------------------- */

static bool full(struct err *e) {
    return err_set(e, ERR_RESOURCE_EXHAUSTED, "the answer is longer than a turn may hold");
}

static enum decision_kind kind_of(struct str answer, const struct yes_no_words *more) {
    static const enum decision_kind kinds[] = {[YES_NO_NEITHER] = DECISION_NONE,
                                               [YES_NO_YES] = DECISION_APPROVE,
                                               [YES_NO_NO] = DECISION_REFUSE};
    struct json json;
    struct err none;
    enum decision_kind kind = kinds[yes_no_of(answer, more)];
    bool edits = kind == DECISION_APPROVE && json_read(str_trim(answer), &json, &none) &&
                 json_is(json_find(json, STR("decision")), str_from(names[DECISION_EDIT]));
    return edits ? DECISION_EDIT : kind;
}

static bool decision_read_members(struct json answer, struct arena *arena, struct decision *ret,
                                  struct err *e) {
    struct json args = json_find(answer, STR("args"));
    struct json reason = json_find(answer, STR("reason"));
    /* With new arguments, an approval is an edit, whatever it is called. */
    if (ret->kind == DECISION_APPROVE && args.kind == JSON_OBJECT) ret->kind = DECISION_EDIT;
    if (ret->kind == DECISION_EDIT && args.kind != JSON_OBJECT) ret->kind = DECISION_NONE;
    if (ret->kind == DECISION_EDIT && !arena_str(arena, args.raw, &ret->args)) return full(e);
    bool why = ret->kind == DECISION_REFUSE && reason.kind == JSON_STRING;
    return !why || json_str(reason, arena, &ret->reason) || full(e);
}

bool decision_read(struct str answer, const struct yes_no_words *more, struct arena *arena,
                   struct decision *ret, struct err *e) {
    struct json json;
    struct err none;
    *ret = (struct decision){kind_of(answer, more), STR_EMPTY, STR_EMPTY};
    bool object = json_read(str_trim(answer), &json, &none) && json.kind == JSON_OBJECT;
    return !object || decision_read_members(json, arena, ret, e);
}

/* --- checking an answer ------------------------------------------------------------------- */

bool decision_args_fit(const struct pending_question *asked, struct json args, struct err *e) {
    return (json_check_unique(args, e) &&
            (!asked->schema || schema_check(asked->schema, args, e))) ||
           err_add(e, "args do not fit the tool '" STR_FMT "'", STR_ARG(asked->tool));
}

/* Report an edit that cannot be made as such, not as undecided. */
static enum pending_found check_edit(const struct pending_question *asked, struct str answer,
                                     struct err *e) {
    struct json json;
    struct err none;
    if (!json_read(str_trim(answer), &json, &none)) return PENDING_TAKEN;
    struct json args = json_find(json, STR("args"));
    enum decision_kind kind = kind_of(answer, NULL);
    if (kind == DECISION_EDIT && args.kind != JSON_OBJECT) {
        err_set(e, ERR_INVALID_ARGUMENT,
                "an edit needs args, the object to call the tool with");
        return PENDING_REFUSED;
    }
    if (kind == DECISION_REFUSE || kind == DECISION_NONE || args.kind != JSON_OBJECT)
        return PENDING_TAKEN;
    bool good = json_check_unique(json, e) && decision_args_fit(asked, args, e);
    return good ? PENDING_TAKEN : PENDING_REFUSED;
}

/* Only the kind of the decision is needed. */
static enum decision_kind read_kind(struct str answer, const struct yes_no_words *more) {
    struct arena *arena = arena_new(2 * answer.len + KIB);
    struct decision decision;
    struct err none;
    bool read = decision_read(answer, more, arena, &decision, &none);
    arena_free(arena);
    return read ? decision.kind : DECISION_NONE;
}

static enum pending_found undecided(struct err *e) {
    err_set(e, ERR_FAILED_PRECONDITION,
            "this decides nothing; answer yes (or ok, approve, allow, go ahead, ...), no (or "
            "refuse, deny, stop, ...), or JSON such as {\"decision\":\"approve\"}");
    return PENDING_UNDECIDED;
}

enum pending_found decision_fits(const struct pending_question *asked, struct str answer,
                                 struct err *e) {
    return asked->guards.len ? decision_settles(asked, answer, e) : PENDING_TAKEN;
}

enum pending_found decision_settles(const struct pending_question *asked, struct str answer,
                                    struct err *e) {
    if (asked->guards.len) {
        enum pending_found found = check_edit(asked, answer, e);
        if (found != PENDING_TAKEN) return found;
    }
    enum decision_kind kind = read_kind(answer, asked->words);
    return kind == DECISION_NONE ? undecided(e) : PENDING_TAKEN;
}

/* --- asking again ------------------------------------------------------------------------- */

static bool same_json(struct str one, struct str other) {
    struct buf a, b;
    buf_init(&a, one.len + 1);
    buf_init(&b, other.len + 1);
    bool same =
        json_compact(one, &a) && json_compact(other, &b) && str_equal(buf_str(&a), buf_str(&b));
    buf_done(&a);
    buf_done(&b);
    return same;
}

static bool same_decision(struct json recorded, struct str answer,
                          const struct yes_no_words *more, struct arena *arena) {
    struct decision decision;
    struct err none;
    struct str reason = STR_EMPTY;
    struct json args = json_find(recorded, STR("args")),
                why = json_find(recorded, STR("reason"));
    if (!decision_read(answer, more, arena, &decision, &none)) return false;
    if (decision.kind == DECISION_NONE ||
        !json_is(json_find(recorded, STR("decision")), decision_name(decision.kind)))
        return false;
    if (why.kind == JSON_STRING && !json_str(why, arena, &reason)) return false;
    return str_equal(reason, decision.reason) &&
           (decision.kind != DECISION_EDIT || same_json(args.raw, decision.args));
}

bool decision_repeats(struct str recorded, struct str answer, const struct yes_no_words *more) {
    struct json json;
    struct err none;
    if (!json_read(recorded, &json, &none)) return false;
    struct json words = json_find(json, STR("answer"));
    if (words.kind == JSON_STRING) return json_is(words, answer);
    struct arena *arena = arena_new(2 * (recorded.len + answer.len) + KIB);
    bool same = same_decision(json, answer, more, arena);
    arena_free(arena);
    return same;
}

bool decision_ask_again(const struct pending_view *view, struct arena *arena,
                        struct event *ret) {
    const struct pending_question *asked = &view->asked;
    struct buf id;
    buf_init(&id, asked->guards.len + 16);
    if (asked->guards.len) buf_append(&id, STR(APPROVAL_ID));
    buf_append(&id, asked->guards);
    *ret = (struct event){.kind = EVENT_APPROVAL,
                          .seq = view->seq,
                          .agent = asked->agent,
                          .approval = {.question = asked->question,
                                       .tool = asked->tool,
                                       .args = asked->args,
                                       .guards = asked->guards}};
    bool kept = arena_str(arena, buf_str(&id), &ret->approval.call_id);
    buf_done(&id);
    return kept;
}
