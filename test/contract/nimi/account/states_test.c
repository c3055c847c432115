/* The two machines of the account, compared with their drawings for every pair of states. */
#include "contract/nimi/account/states.h"

#include "helper/moves.h"

static void the_account_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "unavailable anonymous",
        "unavailable authenticated",
        "unavailable expired",
        "unavailable reauth_required",
        "anonymous login_pending",
        "expired login_pending",
        "reauth_required login_pending",
        "login_pending authenticated",
        "login_pending anonymous",
        "login_pending reauth_required",
        "login_pending unavailable",
        "authenticated refresh_pending",
        "expired refresh_pending",
        "refresh_pending authenticated",
        "refresh_pending unavailable",
        "authenticated expired",
        "authenticated logging_out",
        "expired logging_out",
        "reauth_required logging_out",
        "logging_out anonymous",
        "logging_out unavailable",
        "authenticated switching",
        "expired switching",
        "reauth_required switching",
        "switching anonymous",
        "switching unavailable",
    };
    assert_moves(account_states, ACCOUNT_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

static void a_binding_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "issued active",     "active suspended",  "active revoked",
        "active expired",    "active superseded", "suspended active",
        "suspended revoked", "suspended expired", "suspended superseded",
    };
    assert_moves(binding_states, BINDING_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_account_moves_as_drawn),
        cmocka_unit_test(a_binding_moves_as_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
