/* How a stop waits for readers (K3): rpc_hurry(), and what a call that ended has sent. */
#include "rpc/rpc.h"

#include "fake/exchange_fake.h"
#include "rpc/probe.h"

static struct exchange *hurried(uint64_t within_ms) {
    struct exchange *x = started("/t.Probe/Talk");
    fake_stop_reading(x);
    rpc_send(probe.call, STR("0123456789"));
    settle();
    loop_advance(probe.loop, 5000);
    rpc_site_warn(probe.site);
    rpc_hurry(probe.call, within_ms, STR("closing"));
    seen_is("open stopping");
    return x;
}

static void a_reader_that_pauses_during_a_stop_is_reset(void **state) {
    (void)state;
    struct exchange *x = hurried(5000);
    loop_advance(probe.loop, RPC_HURRY_PAUSE_MS - 1);
    seen_is("");
    loop_advance(probe.loop, 1);
    seen_is("stopped closed");
    /* The code that gRPC clients read as CANCELLED. */
    assert_int_equal(fake_aborted(x), ABORT_CANCEL);
    done(x);
}

static void a_slow_reader_goes_on_during_a_stop_until_its_time_is_over(void **state) {
    (void)state;
    struct exchange *x = hurried(5000);
    for (int i = 0; i < 6; i++) {
        loop_advance(probe.loop, 800);
        fake_read(x, 1);
        settle();
        seen_is("");
    }
    loop_advance(probe.loop, 200);
    seen_is("stopped closed");
    assert_int_equal(fake_aborted(x), ABORT_CANCEL);
    done(x);
}

static void
a_reader_that_has_read_everything_gets_trailers_when_its_time_is_over(void **state) {
    (void)state;
    struct exchange *x = hurried(5000);
    fake_read_all(x);
    settle();
    loop_advance(probe.loop, 4999);
    seen_is("");
    loop_advance(probe.loop, 1);
    seen_is("stopped closed");
    ended_with(x, "1", "closing");
    done(x);
}

static void a_call_that_ends_whole_during_a_stop_ends_ok(void **state) {
    (void)state;
    struct exchange *x = hurried(5000);
    rpc_end(probe.call, ERR_NONE, STR_EMPTY);
    fake_read_all(x);
    settle();
    ended_with(x, "0", NULL);
    done(x);
    seen_is("closed");
}

static void what_a_cancelled_call_has_sent_is_waited_for_briefly_during_a_stop(void **state) {
    (void)state;
    struct exchange *x = started("/t.Probe/Talk");
    fake_stop_reading(x);
    rpc_send(probe.call, STR("words"));
    settle();
    rpc_site_warn(probe.site);
    rpc_end(probe.call, ERR_CANCELLED, STR("closing"));
    loop_advance(probe.loop, RPC_HURRY_PAUSE_MS - 1);
    seen_is("open stopping");
    loop_advance(probe.loop, 1);
    seen_is("closed");
    assert_int_equal(fake_aborted(x), ABORT_CANCEL);
    done(x);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, probe_setup, probe_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_reader_that_pauses_during_a_stop_is_reset),
        TEST(a_slow_reader_goes_on_during_a_stop_until_its_time_is_over),
        TEST(a_reader_that_has_read_everything_gets_trailers_when_its_time_is_over),
        TEST(a_call_that_ends_whole_during_a_stop_ends_ok),
        TEST(what_a_cancelled_call_has_sent_is_waited_for_briefly_during_a_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
