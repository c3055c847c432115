#include "contract/nimi/owner.h"

#include "base/id.h"

bool owner_id(const char *name, struct str id, struct fault *fault) {
    struct err e;
    return id_check(name, id, &e) ||
           fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID, "%s", e.text);
}

bool owner_app(const struct nimi_call *call, struct str app, struct fault *fault) {
    struct str header = call->envelope.app_id;
    if (!owner_id("app_id", app, fault)) return false;
    return header.len == 0 || str_equal(header, app) ||
           fault_set(fault, NIMI_PROTOCOL_DOMAIN_FIELD_CONFLICT,
                     "app_id and x-nimi-app-id name different apps");
}

bool owner_size(const char *name, int32_t size, struct fault *fault) {
    return size >= 0 || fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                                  "%s is %d; it must not be negative", name, size);
}

bool owner_of(const struct nimi_call *call, struct str app, struct str subject,
              struct store_owner *ret, struct fault *fault) {
    struct str header = call->envelope.app_id;
    if (app.len && header.len && !str_equal(app, header))
        return fault_set(fault, NIMI_PROTOCOL_DOMAIN_FIELD_CONFLICT,
                         "context.app_id and x-nimi-app-id name different apps");
    ret->app = app.len ? app : header;
    ret->subject = call->instance->settings->issuers ? call->subject : subject;
    return owner_id("context.app_id", ret->app, fault) &&
           (!ret->subject.len || owner_id("context.subject_user_id", ret->subject, fault));
}

struct store *owner_store(struct nimi_call *call) {
    struct store *store = call->instance->host->engine->store;
    struct fault fault = {.reason = 0};
    if (store) return store;
    err_set(&fault.why, ERR_FAILED_PRECONDITION,
            "this runtime keeps nothing: it has no store; set store.folder");
    nimi_refuse(call, &fault);
    return NULL;
}

/* The protocol has no reason codes for memory and agents. */
void owner_refuse(struct nimi_call *call, const struct err *failed) {
    const struct fault fault = {.reason = 0, .why = *failed};
    nimi_refuse(call, &fault);
}
