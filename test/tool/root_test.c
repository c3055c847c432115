/* Check X6: whatever is in the folder, and whoever changes it meanwhile, nothing outside it is
 * read or written. */
#include "tool/root.h"

#include "helper/assert_str.h"
#include "helper/test_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILES "workspaces/w/files/"

/* A folder of the operator's, `root`, one beside it whose name begins the same, `rootless`,
 * and the root opened. The process stands in the folder around both. */
struct stage {
    char folder[64];
    struct root *root;
    struct buf bytes;
};

static void put(const char *path, const char *text) {
    FILE *file = fopen(path, "we");
    if (!file) fail_msg("%s: %s", path, strerror(errno));
    fputs(text, file);
    fclose(file);
}

static void make_folder(const char *path) {
    assert_int_equal(mkdir(path, 0700), 0);
}

static int set_up(void **state) {
    struct stage *stage = calloc(1, sizeof(*stage));
    struct err e;
    test_folder_make(stage->folder);
    assert_int_equal(chdir(stage->folder), 0);
    make_folder("root");
    make_folder("rootless");
    put("rootless/secret", "outside");
    assert_true(root_open(STR("root"), &stage->root, &e));
    buf_init(&stage->bytes, 64 * KIB);
    *state = stage;
    return 0;
}

static int tear_down(void **state) {
    struct stage *stage = *state;
    root_free(stage->root);
    buf_done(&stage->bytes);
    assert_int_equal(chdir("/"), 0);
    test_folder_remove(stage->folder);
    free(stage);
    return 0;
}

static bool read_path(struct stage *stage, const char *path, struct err *e) {
    uint64_t size;
    buf_clear(&stage->bytes);
    return root_read(stage->root, str_from(path), &stage->bytes, &size, e);
}

static bool write_path(struct stage *stage, const char *path, const char *text, struct err *e) {
    atomic_bool stop = false;
    return root_write(stage->root, str_from(path), str_from(text), &stop, e);
}

static void a_path_is_made_of_a_workspace_and_a_key(void **state) {
    (void)state;
    static const struct {
        const char *workspace, *key, *path;
    } cases[] = {
        {"w", "a", "workspaces/w/files/a"},
        {"w", "/a//b/./c", "workspaces/w/files/a/b/c"},
        {"w", "../../../etc/passwd", "workspaces/w/files/etc/passwd"},
        {"w", "a/../b", "workspaces/w/files/a/b"},
        {"w", "..a/b..", "workspaces/w/files/..a/b.."},
        {"w", "a b\\c", "workspaces/w/files/a b\\c"},
        {"..", "a", "workspaces/%2E%2E/files/a"},
        {".", "a", "workspaces/%2E/files/a"},
        {"...", "a", "workspaces/.../files/a"},
        {"a/../b", "k", "workspaces/a%2F..%2Fb/files/k"},
        {"Ünï", "k", "workspaces/%C3%9Cn%C3%AF/files/k"},
        {"a%2Fb", "k", "workspaces/a%252Fb/files/k"},
        {"a_b-c.9", "k", "workspaces/a_b-c.9/files/k"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf path;
        struct err e;
        buf_init(&path, 4 * KIB);
        assert_true(root_path(str_from(cases[i].workspace), str_from(cases[i].key), &path, &e));
        assert_str(buf_str(&path), cases[i].path);
        buf_done(&path);
    }
}

static void a_path_that_names_no_file_is_refused(void **state) {
    (void)state;
    char name[300], long_key[1100];
    memset(name, 'n', sizeof(name));
    memset(long_key, '/', sizeof(long_key));
    const struct {
        struct str workspace, key;
        const char *why;
    } cases[] = {
        {STR(""), STR("a"), "the call belongs to no workspace"},
        {STR("w"), STR(""), "the key names no file"},
        {STR("w"), STR("/"), "the key names no file"},
        {STR("w"), STR(".././.."), "the key names no file"},
        {STR("w"), STR("a\0b"), "the key holds a control byte"},
        {STR("w"), STR("a\nb"), "the key holds a control byte"},
        {STR("w"), str_of(name, 256), "a part of the key is longer than 255 bytes"},
        {STR("w"), str_of(long_key, 1025), "the key is longer than 1024 bytes"},
        {str_of(name, 256), STR("a"), "the name of the workspace is too long"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf path;
        struct err e;
        buf_init(&path, 4 * KIB);
        assert_false(root_path(cases[i].workspace, cases[i].key, &path, &e));
        assert_string_equal(e.text, cases[i].why);
        assert_int_equal(path.len, 0);
        buf_done(&path);
    }
}

static void a_written_file_is_read(void **state) {
    struct stage *stage = *state;
    struct err e;
    assert_true(write_path(stage, FILES "a/b/c", "one", &e));
    assert_true(write_path(stage, FILES "a/b/c", "two and more", &e));
    assert_true(read_path(stage, FILES "a/b/c", &e));
    assert_str(buf_str(&stage->bytes), "two and more");
    assert_false(read_path(stage, "workspaces/v/files/a/b/c", &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);

    struct stat about;
    assert_int_equal(stat("root/" FILES "a/b/c", &about), 0);
    assert_int_equal(about.st_mode & 07777, 0600);
    assert_int_equal(stat("root/" FILES "a/b", &about), 0);
    assert_int_equal(about.st_mode & 07777, 0700);
}

static void only_the_beginning_is_read_where_there_is_no_room(void **state) {
    struct stage *stage = *state;
    struct err e;
    struct buf few;
    uint64_t size;
    assert_true(write_path(stage, FILES "a", "0123456789", &e));
    for (size_t room = 0; room <= 11; room++) {
        buf_init(&few, room);
        assert_true(root_read(stage->root, STR(FILES "a"), &few, &size, &e));
        assert_int_equal(size, 10);
        assert_true(buf_ok(&few));
        assert_true(str_equal(buf_str(&few), str_head(STR("0123456789"), room)));
        buf_done(&few);
    }
}

static void a_file_has_a_size(void **state) {
    struct stage *stage = *state;
    struct err e;
    atomic_bool stop = false;
    char *large = calloc(1, ROOT_FILE_MAX_BYTES + 1);
    assert_true(write_path(stage, FILES "a", "old", &e));
    assert_false(root_write(stage->root, STR(FILES "a"), str_of(large, ROOT_FILE_MAX_BYTES + 1),
                            &stop, &e));
    assert_int_equal(e.code, ERR_TOO_LARGE);
    assert_true(
        root_write(stage->root, STR(FILES "b"), str_of(large, ROOT_FILE_MAX_BYTES), &stop, &e));
    assert_true(read_path(stage, FILES "b", &e));
    assert_int_equal(truncate("root/" FILES "b", (off_t)(ROOT_FILE_MAX_BYTES + 1)), 0);
    assert_false(read_path(stage, FILES "b", &e));
    assert_int_equal(e.code, ERR_TOO_LARGE);
    assert_true(read_path(stage, FILES "a", &e));
    assert_str(buf_str(&stage->bytes), "old");
    free(large);
}

static void a_write_that_is_stopped_changes_nothing(void **state) {
    struct stage *stage = *state;
    struct err e;
    atomic_bool stop = true;
    assert_true(write_path(stage, FILES "a", "old", &e));
    assert_false(root_write(stage->root, STR(FILES "a"), STR("new"), &stop, &e));
    assert_int_equal(e.code, ERR_CANCELLED);
    assert_false(root_write(stage->root, STR(FILES "a"), STR(""), &stop, &e));
    assert_true(read_path(stage, FILES "a", &e));
    assert_str(buf_str(&stage->bytes), "old");
    assert_int_equal(system("test \"$(ls -A root/" FILES ")\" = a"), 0);
}

/* What stands under the key `name`, made by the caller, is neither read nor replaced. */
static void assert_shut(struct stage *stage, const char *name, enum err_code code) {
    char path[128];
    struct err e;
    snprintf(path, sizeof(path), FILES "%s", name);
    if (read_path(stage, path, &e)) fail_msg("read %s", path);
    if (e.code != code) fail_msg("read %s: %s", path, e.text);
    if (write_path(stage, path, "inside", &e)) fail_msg("wrote %s", path);
    if (e.code != code) fail_msg("write %s: %s", path, e.text);
}

static void links_are_not_followed(void **state) {
    struct stage *stage = *state;
    struct err e;
    assert_true(write_path(stage, FILES "real/a", "inside", &e));
    static const struct {
        const char *link, *to, *key;
    } links[] = {
        {"file", "../../../../rootless/secret", "file"},
        {"folder", "../../../../rootless", "folder/secret"},
        {"absolute", "/etc", "absolute/passwd"},
        {"process", "/proc/self/root", "process/etc/passwd"},
        {"here", "real", "here/a"}, /* even when it stays inside */
        {"dangling", "nowhere", "dangling"},
    };
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        char path[128];
        snprintf(path, sizeof(path), "root/" FILES "%s", links[i].link);
        assert_int_equal(symlink(links[i].to, path), 0);
        assert_shut(stage, links[i].key, ERR_PERMISSION_DENIED);
    }
    assert_int_equal(system("test \"$(cat rootless/secret)\" = outside"), 0);
    assert_int_equal(system("test \"$(ls -A rootless)\" = secret"), 0);
}

static void a_workspace_that_is_a_link_is_not_followed(void **state) {
    struct stage *stage = *state;
    struct err e;
    assert_true(write_path(stage, FILES "a", "inside", &e));
    assert_int_equal(symlink("w", "root/workspaces/v"), 0);
    assert_false(read_path(stage, "workspaces/v/files/a", &e));
    assert_false(write_path(stage, "workspaces/v/files/a", "x", &e));
    assert_int_equal(e.code, ERR_PERMISSION_DENIED);
}

/* root_path() makes no such path; the kernel would refuse it all the same. */
static void no_path_leads_out(void **state) {
    struct stage *stage = *state;
    static const char *const paths[] = {
        "../rootless/secret",
        "workspaces/../../rootless/secret",
        "/etc/passwd",
        "/proc/self/cwd/rootless/secret",
    };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct err e;
        if (read_path(stage, paths[i], &e)) fail_msg("%s", paths[i]);
    }
}

static void only_regular_files_are_files(void **state) {
    struct stage *stage = *state;
    struct err e;
    assert_true(write_path(stage, FILES "folder/a", "inside", &e));
    assert_int_equal(mkfifo("root/" FILES "fifo", 0600), 0);
    assert_shut(stage, "fifo", ERR_INVALID_ARGUMENT); /* and no thread hangs */
    assert_shut(stage, "folder", ERR_INVALID_ARGUMENT);
    assert_shut(stage, "folder/a/b", ERR_NOT_FOUND);

    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "root/" FILES "socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_shut(stage, "socket", ERR_INVALID_ARGUMENT);
    close(fd);

    /* Making a device takes rights that not everybody who runs this has. */
    if (mknod("root/" FILES "null", S_IFCHR | 0600, makedev(1, 3)) == 0)
        assert_shut(stage, "null", ERR_INVALID_ARGUMENT);
}

/* ---- A race ---- */

struct swapper {
    pthread_t thread;
    atomic_bool stop;
};

/* Now a folder, now a link to the one outside, under the same name. */
static void *swap(void *ctx) {
    struct swapper *swapper = ctx;
    while (!atomic_load(&swapper->stop))
        syscall(SYS_renameat2, AT_FDCWD, "root/" FILES "door", AT_FDCWD, "root/" FILES "other",
                2 /* RENAME_EXCHANGE */);
    return NULL;
}

/* Where there are fewer processors than threads both must get their turns. */
#define TRIES_A_TURN 8

/* A share of the row's 10^5; test/proof/file_race.sh asks for all of them. */
static unsigned long race_tries(void) {
    const char *told = getenv("WEIR_RACE_TRIES");
    return told ? strtoul(told, NULL, 10) : 10000;
}

static void a_link_swapped_in_meanwhile_leads_nowhere(void **state) {
    struct stage *stage = *state;
    struct err e;
    struct swapper swapper = {.stop = false};
    unsigned long inside = 0, refused = 0, tries = race_tries();
    assert_true(write_path(stage, FILES "door/secret", "inside", &e));
    assert_int_equal(symlink("../../../../rootless", "root/" FILES "other"), 0);
    assert_int_equal(pthread_create(&swapper.thread, NULL, swap, &swapper), 0);
    for (unsigned long i = 0; i < tries; i++) {
        if (read_path(stage, FILES "door/secret", &e)) {
            assert_str(buf_str(&stage->bytes), "inside");
            inside++;
        } else {
            refused++;
        }
        if (i % TRIES_A_TURN) continue;
        sched_yield();
        if (!write_path(stage, FILES "door/new", "inside", &e)) refused++;
    }
    atomic_store(&swapper.stop, true);
    pthread_join(swapper.thread, NULL);
    print_message("%lu tries: %lu inside, %lu refused\n", tries, inside, refused);
    if (tries >= 100000) assert_true(inside > 0 && refused > 0); /* else it was no race */
    assert_int_equal(system("test \"$(ls -A rootless)\" = secret"), 0);
    assert_int_equal(system("test \"$(cat rootless/secret)\" = outside"), 0);
}

/* ---- Dying in the middle ---- */

#define HALF (256 * KIB)

/* Writes all-a and all-b in turn until it is killed. */
static void write_for_ever(struct stage *stage) {
    atomic_bool stop = false;
    char *bytes = malloc(HALF);
    struct err e;
    for (unsigned i = 0;; i++) {
        memset(bytes, 'a' + (int)(i & 1), HALF);
        if (!root_write(stage->root, STR(FILES "f"), str_of(bytes, HALF), &stop, &e)) _exit(1);
    }
}

static void assert_whole(struct stage *stage) {
    struct buf bytes;
    struct err e;
    uint64_t size;
    buf_init(&bytes, HALF + 1);
    assert_true(root_read(stage->root, STR(FILES "f"), &bytes, &size, &e));
    assert_int_equal(bytes.len, HALF);
    for (size_t i = 1; i < bytes.len; i++) assert_int_equal(bytes.at[i], bytes.at[0]);
    buf_done(&bytes);
}

static void a_writer_that_is_killed_leaves_the_old_file_or_the_new(void **state) {
    struct stage *stage = *state;
    char *first = malloc(HALF);
    atomic_bool stop = false;
    struct err e;
    memset(first, 'a', HALF);
    assert_true(root_write(stage->root, STR(FILES "f"), str_of(first, HALF), &stop, &e));
    free(first);
    for (int round = 0; round < 20; round++) {
        pid_t child = fork();
        if (child == 0) write_for_ever(stage);
        for (int look = 0; look <= round; look++) assert_whole(stage);
        kill(child, SIGKILL);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_whole(stage);
    }
}

/* ---- Opening ---- */

static void a_folder_that_cannot_be_opened_says_why(void **state) {
    (void)state;
    struct root *root;
    struct err e;
    assert_false(root_open(STR("nowhere"), &root, &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_string_equal(e.text, "the folder of files 'nowhere': there is no such folder; make "
                                "it or name another");
    assert_false(root_open(STR("rootless/secret"), &root, &e));
    assert_string_equal(e.text, "the folder of files 'rootless/secret': part of it is a file "
                                "and not a folder");
}

/* From here on this process has no openat2(): it fails with `error`. */
static void forbid_openat2(unsigned error) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ARRAY_LEN(code), .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(2);
}

static void a_kernel_that_cannot_confine_a_root_is_reported(void **state) {
    (void)state;
    static const unsigned errors[] = {ENOSYS, EPERM};
    for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
        pid_t child = fork();
        if (child == 0) {
            struct root *root;
            struct err e;
            forbid_openat2(errors[i]);
            bool refused = !root_open(STR("root"), &root, &e);
            _exit(refused && e.code == ERR_UNIMPLEMENTED && strstr(e.text, "openat2") ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_made_of_a_workspace_and_a_key),
        cmocka_unit_test(a_path_that_names_no_file_is_refused),
        TEST(a_written_file_is_read),
        TEST(only_the_beginning_is_read_where_there_is_no_room),
        TEST(a_file_has_a_size),
        TEST(a_write_that_is_stopped_changes_nothing),
        TEST(links_are_not_followed),
        TEST(a_workspace_that_is_a_link_is_not_followed),
        TEST(no_path_leads_out),
        TEST(only_regular_files_are_files),
        TEST(a_link_swapped_in_meanwhile_leads_nowhere),
        TEST(a_writer_that_is_killed_leaves_the_old_file_or_the_new),
        TEST(a_folder_that_cannot_be_opened_says_why),
        TEST(a_kernel_that_cannot_confine_a_root_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
