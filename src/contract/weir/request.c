/* request: reads the parts of a request to these routes. */
#include "contract/weir/inner.h"

#include "base/nearest.h"

#include <stdarg.h>
#include <stdio.h>

#define TEXT_MAX_BYTES (512 * KIB) /* all text of one request */
#define VALUE_MAX_BYTES (16 * KIB) /* of one query parameter */

bool api_request_refuse(struct api_request *request, int status, const char *format, ...) {
    char text[ERR_TEXT_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    route_refuse(request->call, status, STR("INVALID_INPUT"), "%s", text);
    return false;
}

static bool is_one_of(struct str name, const char *const *names) {
    for (; names && *names; names++) {
        if (str_equal(name, str_from(*names))) return true;
    }
    return false;
}

/* Refuse unknown parameters: a misspelt filter must not show more than was requested. */
static bool check_names(struct api_request *request, const char *const *names) {
    struct str rest = exchange_query(route_exchange(request->call));
    while (rest.len) {
        struct str value, name = str_split(str_split(rest, '&', &rest), '=', &value);
        if (name.len && !is_one_of(name, names))
            return api_request_refuse(request, 400, "there is no parameter '" STR_FMT "' here",
                                      STR_ARG(str_head(name, 80)));
    }
    return true;
}

bool api_request_begin(struct api_request *request, struct route_call *call,
                       struct api_instance *instance, const char *const *names) {
    *request = (struct api_request){.call = call};
    if (!api_identify(call, instance, &request->caller)) return false;
    request->arena = arena_new(TEXT_MAX_BYTES);
    if (check_names(request, names)) return true;
    arena_free(request->arena);
    return false;
}

bool api_query_has(struct route_call *call, struct str name) {
    struct buf nothing;
    buf_init(&nothing, 0);
    bool has = route_query(call, name, &nothing) != QUERY_ABSENT;
    buf_done(&nothing);
    return has;
}

bool api_request_value(struct api_request *request, struct str name, struct str *ret) {
    struct buf value;
    *ret = STR_EMPTY;
    buf_init(&value, VALUE_MAX_BYTES);
    enum query_value found = route_query(request->call, name, &value);
    bool ok = found == QUERY_ABSENT ||
              (found == QUERY_READ && arena_str(request->arena, buf_str(&value), ret));
    buf_done(&value);
    return ok || api_request_refuse(request, 400,
                                    "the parameter " STR_FMT " is not valid text, or too long",
                                    STR_ARG(name));
}

static bool refuse_member(struct api_request *request, struct json key,
                          const char *const *names) {
    struct nearest nearest;
    struct str name = STR_EMPTY;
    if (!json_str(key, request->arena, &name))
        return api_request_refuse(request, 400, "the name of a member is too long");
    nearest_init(&nearest, name);
    for (; *names; names++) nearest_offer(&nearest, str_from(*names));
    return api_request_refuse(request, 400, "there is no member '" STR_FMT "' here%s",
                              STR_ARG(str_head(name, 80)), nearest_hint(&nearest));
}

bool api_request_members(struct api_request *request, struct json body,
                         const char *const *names) {
    struct json_reader reader = json_enter(body);
    struct json key, value;
    struct err e;
    if (!json_check_once(body, names, &e))
        return api_request_refuse(request, 400, "%s", e.text);
    while (body.kind == JSON_OBJECT && json_next_member(&reader, &key, &value)) {
        bool known = false;
        for (const char *const *name = names; *name; name++)
            known = known || json_is(key, str_from(*name));
        if (!known) return refuse_member(request, key, names);
    }
    return true;
}

bool api_request_text(struct api_request *request, struct json body, struct str name,
                      struct str *ret) {
    struct json member = json_find(body, name);
    *ret = STR_EMPTY;
    if (member.kind == JSON_NONE) return true;
    if (member.kind != JSON_STRING)
        return api_request_refuse(request, 422, STR_FMT " must be a string, not %s",
                                  STR_ARG(name), json_kind_name(member.kind));
    return json_str(member, request->arena, ret) ||
           api_request_refuse(request, 422, STR_FMT " is too long", STR_ARG(name));
}

bool api_request_number(struct api_request *request, struct str name, int64_t *ret) {
    struct str value;
    *ret = 0;
    if (!api_request_value(request, name, &value)) return false;
    if (value.len == 0 || str_to_i64(value, ret)) return true;
    return api_request_refuse(request, 400, "the parameter " STR_FMT " must be a number",
                              STR_ARG(name));
}

bool api_request_limit(struct api_request *request, size_t usual, size_t most, size_t *ret) {
    int64_t limit;
    if (!api_request_number(request, STR("limit"), &limit)) return false;
    if (limit < 0) return api_request_refuse(request, 422, "limit must not be negative");
    *ret = limit == 0 ? usual : (uint64_t)limit < most ? (size_t)limit : most;
    return true;
}

/* Read one filter of a listing. It defaults to, and must match, the name the caller is bound
 * to. */
static bool narrow(struct api_request *request, struct str name, bool all, struct str own,
                   struct str *ret) {
    if (!api_request_value(request, name, ret)) return false;
    bool asked = ret->len > 0;
    if (asked && !all && !str_equal(*ret, own)) {
        route_refuse(request->call, 403, STR("FORBIDDEN"), "these belong to another " STR_FMT,
                     STR_ARG(name));
        return false;
    }
    if (!asked) *ret = all ? (struct str){NULL, 0} : own;
    return true;
}

bool api_request_whose(struct api_request *request, struct str *ret_workspace,
                       struct str *ret_user) {
    const struct api_caller *caller = &request->caller;
    return narrow(request, STR("workspace"), caller->all_workspaces, api_workspace(caller),
                  ret_workspace) &&
           narrow(request, STR("user"), caller->all_users, api_user(caller), ret_user);
}

bool api_request_session(struct api_request *request, struct session_name *ret) {
    struct buf session;
    if (!api_request_whose(request, &ret->workspace, &ret->user)) return false;
    if (!ret->workspace.at) ret->workspace = STR("default");
    if (!ret->user.at) ret->user = STR("anonymous");
    buf_init(&session, VALUE_MAX_BYTES);
    bool ok = route_parameter_text(request->call, STR("id"), &session) &&
              arena_str(request->arena, buf_str(&session), &ret->session);
    buf_done(&session);
    return ok || api_request_refuse(request, 400,
                                    "the session in the path is not valid text, or too long");
}
