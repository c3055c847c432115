#include "contract/nimi/job/run_open.h"

#include "contract/nimi/bearer.h"

bool run_open_allowed(struct nimi_call *call, const struct run_owner *owner) {
    struct str app = call->envelope.app_id;
    if (app.len && str_equal(app, owner->app) && bearer_may_see(call, owner->subject))
        return true;
    nimi_refuse_for(
        call, NIMI_APP_SCOPE_FORBIDDEN,
        "this %s belongs to another app or subject; x-nimi-app-id and the token say who "
        "asks",
        owner->what);
    return false;
}

void run_open_failed(struct nimi_call *call, const char *what, const struct err *failed) {
    nimi_refuse_code(call, NIMI_AI_PROVIDER_UNAVAILABLE, failed->code,
                     "the %s cannot be read now; ask again later", what);
}
