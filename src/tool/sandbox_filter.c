/* The seccomp filter of the sandbox: it refuses system calls that only attacks need.
 *
 * Everything else is allowed, because a command may need it. The namespaces are the wall; the
 * filter closes rarely used parts of the kernel. */
#include "tool/sandbox.h"

#include "base/shared_library.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECCOMP_FUNCTIONS(X)                                                                   \
    X(seccomp_init)                                                                            \
    X(seccomp_release)                                                                         \
    X(seccomp_rule_add_array)                                                                  \
    X(seccomp_syscall_resolve_name)                                                            \
    X(seccomp_export_bpf)

struct library {
#define MEMBER(name) __typeof__(name) *name;
    SECCOMP_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* --- the rules ---------------------------------------------------------------------------- */

/* Answered with EPERM. Names that this kernel's architecture does not have are passed over. */
static const char *const refused[] = {
    /* other processes */
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd",
    /* namespaces and mounts */
    "unshare", "setns", "mount", "umount", "umount2", "pivot_root", "chroot", "move_mount",
    "fsopen", "fsconfig", "fsmount", "fspick", "open_tree", "mount_setattr",
    /* the kernel itself */
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "kexec_load", "kexec_file_load", "init_module", "finit_module",
    "delete_module", "reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog",
    "iopl", "ioperm", "modify_ldt", "vhangup", "lookup_dcookie", "nfsservctl", "uselib",
    "ustat", "sysfs", "_sysctl", "personality", "fanotify_init", "open_by_handle_at",
    "name_to_handle_at",
    /* names and times of the machine */
    "sethostname", "setdomainname", "settimeofday", "clock_settime", "clock_settime64",
    "adjtimex", "clock_adjtime", "clock_adjtime64", "stime",
    /* keys */
    "add_key", "request_key", "keyctl",
    /* memory that no limit counts */
    "memfd_create", "memfd_secret", "shmget", "msgget", "semget", "mq_open"};

/* Flags of clone(). */
static const uint64_t new_namespaces[] = {CLONE_NEWNS,    CLONE_NEWUSER, CLONE_NEWPID,
                                          CLONE_NEWNET,   CLONE_NEWIPC,  CLONE_NEWUTS,
                                          CLONE_NEWCGROUP};

/* Input into another process's terminal. */
static const uint64_t terminal_requests[] = {TIOCSTI, 0x541C /* TIOCLINUX */};

/* Families of sockets: these, and those above AF_INET6, are refused. */
static const int families[] = {3, 4, 5, 6, 7, 8, 9};

static struct library table;

static bool sandbox_filter_add(scmp_filter_ctx filter, const char *name, int code,
                               const struct scmp_arg_cmp *arg) {
    int number = table.seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR) return true; /* not of this library */
    int refused_with = table.seccomp_rule_add_array(filter, SCMP_ACT_ERRNO((unsigned)code),
                                                    number, arg ? 1 : 0, arg);
    return refused_with == 0 || refused_with == -EDOM || refused_with == -EEXIST;
}

static bool add_flag(scmp_filter_ctx filter, const char *name, unsigned position,
                     uint64_t flag) {
    const struct scmp_arg_cmp has = {position, SCMP_CMP_MASKED_EQ, flag, flag};
    return sandbox_filter_add(filter, name, EPERM, &has);
}

static bool add_rules(scmp_filter_ctx filter) {
    bool done = true;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        done = done && sandbox_filter_add(filter, refused[i], EPERM, NULL);
    /* Its flags lie in memory, where a filter cannot look: callers fall back to clone(). */
    done = done && sandbox_filter_add(filter, "clone3", ENOSYS, NULL);
    for (size_t i = 0; i < ARRAY_LEN(new_namespaces); i++)
        done = done && add_flag(filter, "clone", 0, new_namespaces[i]);
    for (size_t i = 0; i < ARRAY_LEN(terminal_requests); i++) {
        const struct scmp_arg_cmp is = {1, SCMP_CMP_MASKED_EQ, UINT32_MAX,
                                        terminal_requests[i]};
        done = done && sandbox_filter_add(filter, "ioctl", EPERM, &is);
    }
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        const struct scmp_arg_cmp is = {0, SCMP_CMP_EQ, (scmp_datum_t)families[i], 0};
        done = done && sandbox_filter_add(filter, "socket", EAFNOSUPPORT, &is);
    }
    const struct scmp_arg_cmp above = {0, SCMP_CMP_GT, AF_INET6, 0};
    return done && sandbox_filter_add(filter, "socket", EAFNOSUPPORT, &above);
}

/* --- the library -------------------------------------------------------------------------- */

#define SYMBOL(name) SHARED_SYMBOL(struct library, name),
static const struct shared_symbol symbols[] = {SECCOMP_FUNCTIONS(SYMBOL)};

static struct shared_library library = {
    .file = "libseccomp.so.2",
    .title = "libseccomp",
    .needs = "the sandbox needs libseccomp",
    .package = "libseccomp2",
    .code = ERR_UNIMPLEMENTED,
    .symbols = symbols,
    .symbols_count = ARRAY_LEN(symbols),
    .table = &table,
};

/* The library writes to a file; here one in memory. */
static bool read_filter(scmp_filter_ctx filter, struct buf *out) {
    int fd = memfd_create("filter", MFD_CLOEXEC);
    if (fd < 0) return false;
    bool done = table.seccomp_export_bpf(filter, fd) == 0 && lseek(fd, 0, SEEK_SET) == 0;
    char piece[4096];
    ssize_t got = 0;
    while (done && (got = read(fd, piece, sizeof(piece))) > 0)
        buf_append(out, str_of(piece, (size_t)got));
    close(fd);
    return done && got == 0 && buf_ok(out) && out->len > 0;
}

bool sandbox_filter(struct buf *out, struct err *e) {
    if (!shared_library_load(&library, e)) return false;
    scmp_filter_ctx filter = table.seccomp_init(SCMP_ACT_ALLOW);
    bool done = filter && add_rules(filter) && read_filter(filter, out);
    if (filter) table.seccomp_release(filter);
    return done || err_set(e, ERR_UNIMPLEMENTED, "libseccomp makes no filter here");
}
