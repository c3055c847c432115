#include "server/holder.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* The state of a listening socket in /proc/net/tcp, and its flag in /proc/net/unix. */
#define TCP_LISTENING 0x0A
#define UNIX_ACCEPTING 0x10000

/* --- sockets ------------------------------------------------------------------------------ */

/* The inode that a line of the table gives for our address, or 0. */
typedef uint64_t line_fn(const char *line, const struct address *address);

/*  sl  local_address rem_address   st tx_queue:rx_queue tr:when retrnsmt   uid timeout inode */
static uint64_t tcp_line(const char *line, const struct address *address) {
    unsigned port, state;
    uint64_t inode;
    int parts =
        /* NOLINTNEXTLINE(cert-err34-c): the kernel writes numbers that fit */
        sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*u %*u %" SCNu64,
               &port, &state, &inode);
    bool ours = parts == 3 && state == TCP_LISTENING && (int)port == address_port(address);
    return ours ? inode : 0;
}

/* Num RefCount Protocol Flags Type St Inode Path */
static uint64_t unix_line(const char *line, const struct address *address) {
    unsigned flags;
    uint64_t inode;
    int path_at = 0;
    /* NOLINTNEXTLINE(cert-err34-c): the kernel writes numbers that fit */
    int parts = sscanf(line, "%*s %*x %*x %x %*x %*x %" SCNu64 " %n", &flags, &inode, &path_at);
    if (parts < 2 || path_at == 0 || !(flags & UNIX_ACCEPTING)) return 0;
    struct str path = str_trim(str_from(line + path_at));
    return str_equal(path, str_from(address->as.local.sun_path)) ? inode : 0;
}

static uint64_t find_inode(const char *table, line_fn *read_line,
                           const struct address *address) {
    char line[512];
    uint64_t inode = 0;
    FILE *file = fopen(table, "re");
    if (!file) return 0;
    while (inode == 0 && fgets(line, sizeof(line), file)) inode = read_line(line, address);
    fclose(file);
    return inode;
}

static uint64_t inode_of(const struct address *address) {
    if (address_is_local(address)) return find_inode("/proc/net/unix", unix_line, address);
    uint64_t inode = find_inode("/proc/net/tcp", tcp_line, address);
    return inode ? inode : find_inode("/proc/net/tcp6", tcp_line, address);
}

/* --- processes ---------------------------------------------------------------------------- */

static bool holds(int fds, uint64_t inode) {
    char wanted[40], seen[40];
    int copy = dup(fds);
    DIR *folder = copy >= 0 ? fdopendir(copy) : NULL;
    bool found = false;
    const struct dirent *entry;
    snprintf(wanted, sizeof(wanted), "socket:[%" PRIu64 "]", inode);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the folder is ours alone */
    while (!found && folder && (entry = readdir(folder))) {
        ssize_t len = readlinkat(fds, entry->d_name, seen, sizeof(seen) - 1);
        if (len <= 0) continue;
        seen[len] = '\0';
        found = strcmp(seen, wanted) == 0;
    }
    if (folder)
        closedir(folder);
    else if (copy >= 0)
        close(copy);
    return found;
}

static bool process_holds(const char *pid, uint64_t inode) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
    int fds = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fds < 0) return false;
    bool found = holds(fds, inode);
    close(fds);
    return found;
}

/* A process may choose any name; bytes that are not printable ASCII become '?'. */
static void print(const char *pid, char *ret, size_t size) {
    char path[64], name[32] = "";
    snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
    FILE *file = fopen(path, "re");
    if (file && !fgets(name, sizeof(name), file)) name[0] = '\0';
    if (file) fclose(file);
    name[strcspn(name, "\n")] = '\0';
    for (char *at = name; *at; at++)
        if (*at < ' ' || *at > '~') *at = '?';
    if (name[0])
        snprintf(ret, size, "pid %s (%s)", pid, name);
    else
        snprintf(ret, size, "pid %s", pid);
}

bool holder_find(const struct address *address, char *ret, size_t size) {
    uint64_t inode = inode_of(address);
    DIR *folder = inode ? opendir("/proc") : NULL;
    if (!folder) return false;
    bool found = false;
    const struct dirent *entry;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the folder is ours alone */
    while (!found && (entry = readdir(folder))) {
        bool is_pid = entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
        found = is_pid && process_holds(entry->d_name, inode);
        if (found) print(entry->d_name, ret, size);
    }
    closedir(folder);
    return found;
}
