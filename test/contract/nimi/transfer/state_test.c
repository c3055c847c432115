#include "contract/nimi/transfer/state.h"

#include "helper/assert_str.h"
#include "helper/moves.h"

static void download_states_match_the_drawing(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "queued running",   "queued paused",     "queued cancelled",  "running paused",
        "running failed",   "running completed", "running cancelled", "paused queued",
        "paused cancelled", "failed queued",     "failed cancelled",
    };
    assert_moves(download_states, DOWNLOAD_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(download_states_match_the_drawing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
