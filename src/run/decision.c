#include "run/decision.h"

#include "run/parking.h"
#include "wire/consent.h"
#include "wire/json.h"
#include "wire/schema.h"

static const char *const names[] = {
    [DECISION_APPROVE] = "approve", [DECISION_REFUSE] = "refuse", [DECISION_EDIT] = "edit"};

struct str decision_name(enum decision_kind kind) {
    return str_from(names[kind]);
}

/* --- JSON --------------------------------------------------------------------------------- */

static bool full(struct err *e) {
    return err_set(e, ERR_RESOURCE_EXHAUSTED, "the answer is longer than a turn may hold");
}

static enum decision_kind kind_of(struct json answer) {
    struct json word = json_find(answer, STR("decision"));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (json_is(word, str_from(names[i]))) return (enum decision_kind)i;
    }
    bool approved = json_find(answer, STR("approved")).kind == JSON_TRUE;
    return approved && word.kind == JSON_NONE ? DECISION_APPROVE : DECISION_REFUSE;
}

static bool read_object(struct json answer, struct arena *arena, struct decision *ret,
                        struct err *e) {
    struct json args = json_find(answer, STR("args"));
    struct json reason = json_find(answer, STR("reason"));
    ret->kind = kind_of(answer);
    /* What the human wrote instead is what he means, however he calls it. */
    if (ret->kind == DECISION_APPROVE && args.kind == JSON_OBJECT) ret->kind = DECISION_EDIT;
    if (ret->kind == DECISION_EDIT && args.kind != JSON_OBJECT) ret->kind = DECISION_REFUSE;
    if (ret->kind == DECISION_EDIT && !arena_str(arena, args.raw, &ret->args)) return full(e);
    bool why = ret->kind == DECISION_REFUSE && reason.kind == JSON_STRING;
    return !why || json_str(reason, arena, &ret->reason) || full(e);
}

bool decision_read(struct str answer, struct arena *arena, struct decision *ret,
                   struct err *e) {
    struct json json;
    struct err none;
    struct str words = str_trim(answer);
    *ret = (struct decision){DECISION_REFUSE, STR_EMPTY, STR_EMPTY};
    if (json_read(words, &json, &none)) {
        if (json.kind == JSON_OBJECT) return read_object(json, arena, ret, e);
        if (json.kind == JSON_TRUE) ret->kind = DECISION_APPROVE;
        if (json.kind == JSON_STRING && !json_str(json, arena, &words)) return full(e);
        if (json.kind != JSON_STRING) return true;
    }
    if (consent_given(words)) {
        ret->kind = DECISION_APPROVE;
        return true;
    }
    return arena_str(arena, words, &ret->reason) || full(e);
}

/* --- what fits ---------------------------------------------------------------------------- */

bool decision_args_fit(const struct parked_question *asked, struct json args, struct err *e) {
    return !asked->schema || schema_check(asked->schema, args, e) ||
           err_add(e, "args do not fit the tool '" STR_FMT "'", STR_ARG(asked->tool));
}

bool decision_fits(const struct parked_question *asked, struct str answer, struct err *e) {
    struct json json;
    struct err none;
    if (asked->guards.len == 0 || !json_read(str_trim(answer), &json, &none)) return true;
    struct json args = json_find(json, STR("args"));
    bool edits = json_is(json_find(json, STR("decision")), str_from(names[DECISION_EDIT]));
    if (edits && args.kind != JSON_OBJECT)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "an edit needs args, the object to call the tool with");
    if (json.kind != JSON_OBJECT || kind_of(json) == DECISION_REFUSE) return true;
    return args.kind != JSON_OBJECT || decision_args_fit(asked, args, e);
}
