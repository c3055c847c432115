/* doctor: ports, open files, memory and the clock of this machine. */
#include "base/clock.h"
#include "cli/doctor.h"
#include "server/address.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* --- who holds a port --------------------------------------------------------------------- */

#define TCP_LISTEN 0x0A

/* The inode of a socket that listens on `port`, or 0. */
static unsigned long find_inode(const char *table, int port) {
    FILE *file = fopen(table, "re");
    char line[512];
    unsigned long found = 0;
    while (file && !found && fgets(line, sizeof(line), file)) {
        unsigned local_port, socket_state;
        unsigned long inode;
        /* sl: local:port remote:port state queues timer retransmits uid timeout inode
         * NOLINTNEXTLINE(cert-err34-c): the kernel writes numbers that fit */
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*s %*s %lu",
                   &local_port, &socket_state, &inode) != 3)
            continue;
        if (socket_state == TCP_LISTEN && (int)local_port == port) found = inode;
    }
    if (file) fclose(file);
    return found;
}

/* NOLINTBEGIN(concurrency-mt-unsafe): readdir() is safe on a stream that nobody else reads */
static bool has_socket(const char *pid, unsigned long inode) {
    char path[300], wanted[64], target[64];
    snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
    snprintf(path, sizeof(path), "/proc/%s/fd", pid);
    DIR *folder = opendir(path);
    bool found = false;
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
        ssize_t len = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);
        if (len <= 0) continue;
        target[len] = '\0';
        found = strcmp(target, wanted) == 0;
    }
    if (folder) closedir(folder);
    return found;
}

/* Only processes of this user show their descriptors, unless we are root. */
static long find_holder(int port, char name[static 32]) {
    unsigned long inode = find_inode("/proc/net/tcp", port);
    if (!inode) inode = find_inode("/proc/net/tcp6", port);
    DIR *processes = inode ? opendir("/proc") : NULL;
    long pid = 0;
    for (struct dirent *entry; processes && !pid && (entry = readdir(processes));) {
        uint64_t number;
        if (!str_to_u64(str_from(entry->d_name), &number)) continue;
        if (has_socket(entry->d_name, inode)) pid = (long)number;
    }
    if (processes) closedir(processes);
    snprintf(name, 32, "?");
    char path[64];
    snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
    FILE *file = pid ? fopen(path, "re") : NULL;
    if (file && fgets(name, 32, file)) name[strcspn(name, "\n")] = '\0';
    if (file) fclose(file);
    return pid;
}
/* NOLINTEND(concurrency-mt-unsafe) */

/* --- ports -------------------------------------------------------------------------------- */

/* 0, or why the address cannot be had. A unix socket is only looked at. */
static int try_address(const struct address *address) {
    int on = 1;
    int fd = socket(address->as.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    int reason = 0;
    if (address_is_local(address)) {
        if (connect(fd, &address->as.any, address->len) == 0) reason = EADDRINUSE;
    } else {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (bind(fd, &address->as.any, address->len) != 0) reason = errno;
    }
    close(fd);
    return reason;
}

static void say_taken(struct doctor *doctor, const char *name, struct str text, int port) {
    char holder[32], fix[128];
    long pid = port ? find_holder(port, holder) : 0;
    long ours = doctor_store_owner(doctor->config);
    if (ours && (pid == ours || !pid)) {
        doctor_say(doctor, FINDING_NOTE, "ports", NULL,
                   "%s " STR_FMT ": the weir that runs has it (process %ld)", name,
                   STR_ARG(text), ours);
        return;
    }
    snprintf(fix, sizeof(fix), "weir serve --%s 127.0.0.1:0", name);
    if (pid) {
        doctor_say(doctor, FINDING_BAD, "ports", fix,
                   "%s " STR_FMT " is taken by process %ld (%s)", name, STR_ARG(text), pid,
                   holder);
    } else {
        snprintf(fix, sizeof(fix), "sudo ss -ltnp 'sport = :%d'", port);
        doctor_say(doctor, FINDING_BAD, "ports", fix,
                   "%s " STR_FMT " is taken by a process of another user", name, STR_ARG(text));
    }
}

static void check_port(struct doctor *doctor, const char *name, struct str text) {
    struct address address;
    struct err e;
    char fix[64];
    if (text.len == 0) {
        doctor_say(doctor, FINDING_NOTE, "ports", NULL, "%s is off", name);
        return;
    }
    snprintf(fix, sizeof(fix), "weir serve --%s 127.0.0.1:0", name);
    if (!address_parse(text, &address, &e)) {
        doctor_say(doctor, FINDING_BAD, "ports", fix, "%s: %s", name, e.text);
        return;
    }
    int reason = try_address(&address);
    if (reason == EADDRINUSE) {
        say_taken(doctor, name, text, address_port(&address));
    } else if (reason) {
        doctor_say(doctor, FINDING_BAD, "ports", fix, "%s " STR_FMT ": %s", name, STR_ARG(text),
                   strerrordesc_np(reason));
    } else {
        doctor_say(doctor, FINDING_GOOD, "ports", NULL, "%s " STR_FMT " is free", name,
                   STR_ARG(text));
    }
}

void doctor_ports(struct doctor *doctor) {
    check_port(doctor, "http", doctor->config->listen.http);
    check_port(doctor, "grpc", doctor->config->listen.grpc);
}

/* --- open files --------------------------------------------------------------------------- */

/* Loops, the store's files, the log, and some air. */
#define FILES_OF_OUR_OWN 64

void doctor_files(struct doctor *doctor) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    const struct config *config = doctor->config;
    uint64_t listeners =
        (config->listen.http.len ? 1u : 0) + (config->listen.grpc.len ? 1u : 0);
    uint64_t wanted =
        listeners * config->limits.connections + 4 * config->threads + FILES_OF_OUR_OWN;
    char fix[64];
    snprintf(fix, sizeof(fix), "ulimit -n %llu", (unsigned long long)wanted);
    bool enough = limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted;
    doctor_say(doctor, enough ? FINDING_GOOD : FINDING_BAD, "files", enough ? NULL : fix,
               "%llu may be open, full listeners need %llu", (unsigned long long)limit.rlim_cur,
               (unsigned long long)wanted);
}

/* --- memory ------------------------------------------------------------------------------- */

#define MEMORY_LEAST_BYTES (64 * MIB)

/* A number of kB behind "MemAvailable:", or all of a file that is one number. */
static bool read_number(const char *path, const char *key, uint64_t *ret) {
    FILE *file = fopen(path, "re");
    char line[256];
    bool found = false;
    while (file && !found && fgets(line, sizeof(line), file)) {
        struct str text = str_trim(str_from(line));
        if (!str_starts(text, str_from(key))) continue;
        text = str_trim(str_skip(text, strlen(key)));
        found = str_to_u64(str_head(text, str_find_byte(text, ' ')), ret);
    }
    if (file) fclose(file);
    return found;
}

void doctor_memory(struct doctor *doctor) {
    uint64_t free_kb, ceiling;
    if (!read_number("/proc/meminfo", "MemAvailable:", &free_kb)) return;
    uint64_t bytes = free_kb * KIB;
    if (read_number("/sys/fs/cgroup/memory.max", "", &ceiling) && ceiling < bytes)
        bytes = ceiling;
    bool enough = bytes >= MEMORY_LEAST_BYTES;
    doctor_say(doctor, enough ? FINDING_GOOD : FINDING_BAD, "memory",
               enough ? NULL : "ps -eo rss,pid,comm --sort=-rss | head",
               "%llu MiB can be had; an idle weir takes 8", (unsigned long long)(bytes / MIB));
}

/* --- clock -------------------------------------------------------------------------------- */

void doctor_clock(struct doctor *doctor) {
    time_t now = (time_t)(clock_unix_ms() / 1000);
    struct tm utc;
    char text[32];
    gmtime_r(&now, &utc);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
    int year = utc.tm_year + 1900;
    bool sane = year >= 2024 && year < 2100;
    doctor_say(doctor, sane ? FINDING_GOOD : FINDING_BAD, "clock",
               sane ? NULL : "timedatectl status", "%s%s", text,
               sane ? "" : ": tokens are judged by their date");
}
