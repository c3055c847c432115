#include "tool/sandbox.h"

#include "base/mem.h"
#include "loop/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROGRAMS_PATH "/usr/bin:/bin:/usr/local/bin"
#define INSIDE_PATH "/usr/local/bin:/usr/bin:/bin"
#define FILTER_MAX_BYTES (64 * KIB)
#define OPEN_FILES "--nofile=256"
#define PROBE_MS 5000
#define WORDS_MAX 128
#define FILE_WORDS 4 /* room for one text, in words */
#define COMPLAINT_BYTES 512

enum { SETPRIV, BWRAP, PRLIMIT, PROGRAM_COUNT };

static const struct {
    const char *name, *package;
} programs[PROGRAM_COUNT] = {[SETPRIV] = {"setpriv", "util-linux"},
                             [BWRAP] = {"bwrap", "bubblewrap"},
                             [PRLIMIT] = {"prlimit", "util-linux"}};

struct sandbox {
    char *paths[PROGRAM_COUNT];
    struct buf filter;
    bool network, drops; /* drops: we are root, and become SANDBOX_ID */
    uint64_t file_bytes;
    char memory[32], cpu[32], processes[32], scratch[32];
};

/* --- what this machine has ---------------------------------------------------------------- */

static bool find_program(struct sandbox *sandbox, size_t which, struct err *e) {
    struct buf path;
    buf_init(&path, 4 * KIB);
    bool found = child_find(str_from(programs[which].name), STR(PROGRAMS_PATH), &path);
    if (found) sandbox->paths[which] = str_dup(str_from(path.at));
    buf_done(&path);
    return found ||
           err_set(e, ERR_UNIMPLEMENTED, "the program %s is missing: install the package %s",
                   programs[which].name, programs[which].package);
}

bool sandbox_new(const struct sandbox_limits *limits, struct sandbox **ret, struct err *e) {
    struct sandbox *sandbox = MEM_NEW(struct sandbox);
    buf_init(&sandbox->filter, FILTER_MAX_BYTES);
    sandbox->network = limits->network;
    sandbox->file_bytes = limits->file_bytes;
    sandbox->drops = geteuid() == 0;
#define LIMIT(member, format, number)                                                          \
    snprintf(sandbox->member, sizeof(sandbox->member), format, (unsigned long long)(number))
    LIMIT(memory, "--as=%llu", limits->memory_bytes);
    LIMIT(processes, "--nproc=%llu", limits->processes);
    LIMIT(scratch, "%llu", limits->scratch_bytes);
#undef LIMIT
    /* SIGXCPU first, then SIGKILL */
    snprintf(sandbox->cpu, sizeof(sandbox->cpu), "--cpu=%llu:%llu",
             (unsigned long long)limits->cpu_s, (unsigned long long)limits->cpu_s + 1);
    bool done = sandbox_filter(&sandbox->filter, e);
    for (size_t i = 0; i < PROGRAM_COUNT; i++) done = done && find_program(sandbox, i, e);
    if (!done) {
        sandbox_free(sandbox);
        return false;
    }
    *ret = sandbox;
    return true;
}

void sandbox_free(struct sandbox *sandbox) {
    if (!sandbox) return;
    for (size_t i = 0; i < PROGRAM_COUNT; i++) free(sandbox->paths[i]);
    buf_done(&sandbox->filter);
    free(sandbox);
}

struct str sandbox_input(const struct sandbox *sandbox) {
    return buf_str(&sandbox->filter);
}

bool sandbox_own(const char *folder, struct err *e) {
    struct stat found;
    if (geteuid() != 0 || (stat(folder, &found) == 0 && found.st_uid == SANDBOX_ID))
        return true;
    if (chown(folder, SANDBOX_ID, SANDBOX_ID) == 0) return true;
    return err_set(e, ERR_PERMISSION_DENIED,
                   "the folder of the workspace cannot be handed over");
}

/* --- the command -------------------------------------------------------------------------- */

struct words {
    const char **at;
    size_t count;
};

static void add_all(struct words *words, const char *const *more) {
    for (; *more; more++) words->at[words->count++] = *more;
}

#define ADD(...) add_all(words, (const char *const[]){__VA_ARGS__, NULL})

static bool is_link(const char *path) {
    struct stat found;
    return lstat(path, &found) == 0 && S_ISLNK(found.st_mode);
}

/* /bin and the like are links into /usr, or folders of their own. */
static void add_system(struct words *words) {
    static const struct {
        const char *path, *target;
    } tops[] = {{"/bin", "usr/bin"},
                {"/sbin", "usr/sbin"},
                {"/lib", "usr/lib"},
                {"/lib32", "usr/lib32"},
                {"/lib64", "usr/lib64"}};
    static const char *const files[] = {
        "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
        "/etc/localtime",    "/etc/mime.types",  "/etc/ssl/certs",  "/etc/ssl/openssl.cnf"};
    ADD("--ro-bind", "/usr", "/usr");
    for (size_t i = 0; i < ARRAY_LEN(tops); i++) {
        if (is_link(tops[i].path)) {
            ADD("--symlink", tops[i].target, tops[i].path);
        } else {
            ADD("--ro-bind-try", tops[i].path, tops[i].path);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(files); i++) ADD("--ro-bind-try", files[i], files[i]);
}

static void add_network(const struct sandbox *sandbox, struct words *words) {
    static const char *const files[] = {"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf",
                                        "/etc/services"};
    if (!sandbox->network) ADD("--unshare-net");
    for (size_t i = 0; sandbox->network && i < ARRAY_LEN(files); i++)
        ADD("--ro-bind-try", files[i], files[i]);
}

const char **sandbox_args(const struct sandbox *sandbox,
                          const struct sandbox_command *command) {
    struct words list = {mem_zero(WORDS_MAX + FILE_WORDS, sizeof(char *)), 0}, *words = &list;
    char *file = (char *)(list.at + WORDS_MAX); /* at the end of the list */
    uint64_t file_bytes =
        command->file_bytes < sandbox->file_bytes ? command->file_bytes : sandbox->file_bytes;
    snprintf(file, FILE_WORDS * sizeof(char *), "--fsize=%llu", (unsigned long long)file_bytes);
    /* The filter stands on our standard input; the command gets none. */
    ADD("sh", "-c", "exec 3<&0 </dev/null; exec \"$@\"", "sh");
    if (sandbox->drops)
        ADD(sandbox->paths[SETPRIV], "--reuid=65534", "--regid=65534", "--clear-groups",
            "--no-new-privs", "--inh-caps=-all");
    ADD(sandbox->paths[BWRAP], "--unshare-user", "--disable-userns", "--unshare-pid",
        "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent",
        "--new-session", "--hostname", "sandbox", "--uid", "65534", "--gid", "65534",
        "--cap-drop", "ALL", "--clearenv");
    ADD("--setenv", "PATH", INSIDE_PATH, "--setenv", "HOME", "/workspace", "--setenv", "LANG",
        "C.UTF-8");
    add_system(words);
    add_network(sandbox, words);
    ADD("--proc", "/proc", "--dev", "/dev", "--size", sandbox->scratch, "--tmpfs", "/dev/shm",
        "--size", sandbox->scratch, "--tmpfs", "/tmp", "--bind", command->folder, "/workspace",
        "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/workspace", "--seccomp", "3",
        "--");
    ADD(sandbox->paths[PRLIMIT], sandbox->memory, sandbox->cpu, sandbox->processes, file,
        "--core=0", OPEN_FILES, "--", "/bin/sh", "-c", command->text);
    return list.at;
}

/* --- the probe ---------------------------------------------------------------------------- */

struct probe {
    int filter, output; /* descriptors; -1: none */
    pid_t pid;
    struct buf said;
};

static bool open_probe(const struct sandbox *sandbox, struct probe *probe, int ret_write[1]) {
    int pipe_fds[2];
    struct str filter = sandbox_input(sandbox);
    probe->filter = memfd_create("filter", MFD_CLOEXEC);
    if (probe->filter < 0 || pipe2(pipe_fds, O_CLOEXEC) != 0) return false;
    probe->output = pipe_fds[0];
    ret_write[0] = pipe_fds[1];
    return write(probe->filter, filter.at, filter.len) == (ssize_t)filter.len &&
           lseek(probe->filter, 0, SEEK_SET) == 0;
}

static bool spawn_probe(const struct sandbox *sandbox, const char *folder, struct probe *probe,
                        int output) {
    static char *const environment[] = {(char *)(uintptr_t) "PATH=" INSIDE_PATH, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    const struct sandbox_command command = {folder, "true", sandbox->file_bytes};
    const char **args = sandbox_args(sandbox, &command);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_adddup2(&actions, probe->filter, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_adddup2(&actions, output, 2);
    int failed = posix_spawn(&probe->pid, SANDBOX_PROGRAM, &actions, &attributes,
                             (char *const *)(uintptr_t)args, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    free(args);
    return failed == 0;
}

static int64_t sandbox_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Until all of it has ended: nothing holds the pipe any more. False: it took too long. */
static bool read_probe(struct probe *probe) {
    int64_t deadline = sandbox_now_ms() + PROBE_MS;
    for (;;) {
        char piece[256];
        struct pollfd ready = {.fd = probe->output, .events = POLLIN};
        int64_t left = deadline - sandbox_now_ms();
        int count = left > 0 ? poll(&ready, 1, (int)left) : 0;
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        ssize_t got = read(probe->output, piece, sizeof(piece));
        if (got <= 0) return got == 0;
        buf_append(&probe->said, str_of(piece, (size_t)got)); /* its beginning is enough */
    }
}

static int wait_probe(struct probe *probe, bool ended) {
    int status = -1;
    if (!ended) kill(-probe->pid, SIGKILL);
    while (waitpid(probe->pid, &status, 0) < 0 && errno == EINTR) continue;
    return ended && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool sandbox_explain(const struct sandbox *sandbox, const struct probe *probe,
                            struct err *e) {
    struct str said = str_trim(buf_str(&probe->said));
    struct str line = str_head(said, str_find_byte(said, '\n'));
    bool unreachable = sandbox->drops && str_find(line, STR("source path")) < line.len;
    if (unreachable)
        return err_set(e, ERR_UNIMPLEMENTED,
                       "weir runs as root, commands as user %d, who cannot reach the folder: "
                       "choose one whose parents anyone may enter (" STR_FMT ")",
                       SANDBOX_ID, STR_ARG(str_head(line, 160)));
    return err_set(e, ERR_UNIMPLEMENTED,
                   "a command cannot be shut in here: user namespaces may be off "
                   "(sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone), or a "
                   "container forbids them" STR_FMT STR_FMT STR_FMT,
                   STR_ARG(line.len ? STR(" (") : STR_EMPTY), STR_ARG(str_head(line, 160)),
                   STR_ARG(line.len ? STR(")") : STR_EMPTY));
}

bool sandbox_probe(const struct sandbox *sandbox, const char *folder, struct err *e) {
    struct probe probe = {.filter = -1, .output = -1};
    int output = -1, code = -1;
    buf_init(&probe.said, COMPLAINT_BYTES);
    bool started =
        open_probe(sandbox, &probe, &output) && spawn_probe(sandbox, folder, &probe, output);
    if (output >= 0) close(output);
    if (started) code = wait_probe(&probe, read_probe(&probe));
    bool works = started && code == 0;
    if (!works) sandbox_explain(sandbox, &probe, e);
    if (probe.filter >= 0) close(probe.filter);
    if (probe.output >= 0) close(probe.output);
    buf_done(&probe.said);
    return works;
}
