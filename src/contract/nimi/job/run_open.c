#include "contract/nimi/job/run_open.h"

#include "contract/nimi/bearer.h"

bool run_open_allowed(struct nimi_call *call, const struct run_owner *owner) {
    struct fault fault;
    struct str app = call->envelope.app_id;
    if (app.len && str_equal(app, owner->app) && bearer_may_see(call, owner->subject))
        return true;
    fault_set(&fault, NIMI_APP_SCOPE_FORBIDDEN,
              "this %s belongs to another app or subject; x-nimi-app-id and the token say who "
              "asks",
              owner->what);
    nimi_refuse(call, &fault);
    return false;
}

void run_open_failed(struct nimi_call *call, const char *what, const struct err *failed) {
    struct fault fault;
    fault_set_code(&fault, NIMI_AI_PROVIDER_UNAVAILABLE, failed->code,
                   "the %s cannot be read now; ask again later", what);
    nimi_refuse(call, &fault);
}
