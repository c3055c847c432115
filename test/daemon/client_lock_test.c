/* Who has the bytes of clients.lock: commands share it, the daemon wants it alone. Each descriptor
 * stands for a process, because the locks belong to open files. */
#include "daemon/client_lock.h"
#include "helper/assert_str.h"
#include "helper/test_folder.h"

#include <unistd.h>

static char folder[64];

static int lock_setup(void **state) {
    (void)state;
    test_folder_make(folder);
    return 0;
}

static int lock_teardown(void **state) {
    (void)state;
    test_folder_remove(folder);
    return 0;
}

static int opened(void) {
    int file = client_lock_open(str_from(folder), true);
    assert_true(file >= 0);
    return file;
}

static void the_daemon_has_it_when_no_command_is_left(void **state) {
    (void)state;
    int daemon = opened(), first = opened(), second = opened();
    assert_true(client_lock_try(first) && client_lock_wait(second));
    assert_false(client_lock_alone(daemon));
    close(first);
    assert_false(client_lock_alone(daemon));
    close(second);
    assert_true(client_lock_alone(daemon));
    close(daemon);
}

static void no_command_joins_a_daemon_that_is_ending(void **state) {
    (void)state;
    int daemon = opened(), late = opened();
    assert_true(client_lock_alone(daemon));
    assert_false(client_lock_try(late));
    close(daemon);
    assert_true(client_lock_try(late));
    close(late);
}

/* The last one to leave ends the daemon itself; one that fails to be the last still counts. */
static void the_last_command_knows_that_it_is_the_last(void **state) {
    (void)state;
    int daemon = opened(), first = opened(), second = opened();
    assert_true(client_lock_try(first) && client_lock_try(second));
    assert_false(client_lock_alone(first));
    close(second);
    assert_false(client_lock_alone(daemon));
    assert_true(client_lock_alone(first));
    assert_false(client_lock_alone(daemon));
    close(first);
    close(daemon);
}

static void starting_and_using_are_two_things(void **state) {
    (void)state;
    int starter = opened(), user = opened();
    assert_true(client_lock_begin(starter));
    assert_true(client_lock_try(user));
    client_lock_begun(starter);
    assert_true(client_lock_begin(user));
    close(user);
    assert_true(client_lock_begin(starter)); /* which a process that ends gives back, too */
    close(starter);
}

static void a_folder_without_the_file_has_no_daemon(void **state) {
    (void)state;
    assert_int_equal(client_lock_open(STR("/nonexistent"), true), -1);
    assert_int_equal(client_lock_open(STR("/"), false), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_daemon_has_it_when_no_command_is_left),
        cmocka_unit_test(no_command_joins_a_daemon_that_is_ending),
        cmocka_unit_test(the_last_command_knows_that_it_is_the_last),
        cmocka_unit_test(starting_and_using_are_two_things),
        cmocka_unit_test(a_folder_without_the_file_has_no_daemon),
    };
    return cmocka_run_group_tests(tests, lock_setup, lock_teardown);
}
