#include "contract/nimi/attached_binding.h"

#include "contract/nimi/account/account.h"

bool attached_binding_ok(const struct nimi_call *call, struct str app,
                         const struct nimi_scoped_runtime_binding_attachment *attached,
                         struct fault *fault) {
    const struct account_now now = account_now(call->loop, call->subject);
    if (!attached || !attached->binding_id.len) return true;
    if (str_equal(attached->runtime_app_id, app) &&
        account_check_binding(call->instance->runtime->account, attached, &now) ==
            NIMI_ACCOUNT_REASON_CODE_ACTION_EXECUTED)
        return true;
    return fault_set_code(fault, NIMI_APP_GRANT_INVALID, ERR_PERMISSION_DENIED,
                          "the scoped binding is not in force for this app; issue a new one");
}
