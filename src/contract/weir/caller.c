#include "contract/caller.h"
#include "contract/weir/inner.h"

bool api_caller_find(struct route_call *call, const struct contract_callers *callers,
                     struct api_caller *ret, struct route_failure *ret_failure) {
    struct contract_caller found;
    if (!contract_caller_find(call, callers, &found, ret_failure)) return false;
    if (!found.proved) {
        *ret = (struct api_caller){.all_workspaces = true, .all_users = true};
        return true;
    }
    if (!api_caller_set(ret, found.identity.workspace, found.identity.user)) {
        *ret_failure = contract_caller_unknown();
        return false;
    }
    ret->proved = true;
    return true;
}
