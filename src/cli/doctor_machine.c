/* doctor: checks ports, open files, memory, the clock, speech and commands on this machine. */
#include "base/clock.h"
#include "base/machine.h"
#include "cli/contracts.h"
#include "cli/doctor.h"
#include "config/setting.h"
#include "provider/media_local.h"
#include "server/holder.h"
#include "tool/exec.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* --- ports -------------------------------------------------------------------------------- */

/* 0, or the errno for which the address cannot be bound. A unix socket is only checked. */
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

/* The command that serves this listener elsewhere. */
static const char *fix_port(const struct doctor *doctor, const char *name, char room[64]) {
    char key[64];
    snprintf(key, sizeof(key), "listen.%s", name);
    const struct setting *setting = setting_by_key(doctor->config, str_from(key));
    snprintf(room, 64, "weir serve --%s 127.0.0.1:0", setting ? setting->flag : name);
    return room;
}

static void say_taken(struct doctor *doctor, const char *name, struct str text,
                      const struct address *address) {
    char holder[64] = "a process, perhaps of another user", ours[32], fix[64];
    bool known = holder_find(address, holder, sizeof(holder));
    long owner = doctor_store_owner(doctor->config);
    snprintf(ours, sizeof(ours), "pid %ld ", owner);
    if (owner && (!known || str_starts(str_from(holder), str_from(ours)))) {
        doctor_say(doctor, FINDING_NOTE, "ports", NULL,
                   "%s " STR_FMT ": the weir that runs has it (pid %ld)", name, STR_ARG(text),
                   owner);
        return;
    }
    doctor_say(doctor, FINDING_BAD, "ports", fix_port(doctor, name, fix),
               "%s " STR_FMT " is taken by %s", name, STR_ARG(text), holder);
}

static void check_port(struct doctor *doctor, const char *name, struct str text) {
    struct address address;
    struct err e;
    char room[64];
    if (text.len == 0) {
        doctor_say(doctor, FINDING_NOTE, "ports", NULL, "%s is off", name);
        return;
    }
    const char *fix = fix_port(doctor, name, room);
    if (!address_parse(text, &address, &e)) {
        doctor_say(doctor, FINDING_BAD, "ports", fix, "%s: %s", name, e.text);
        return;
    }
    int reason = try_address(&address);
    if (reason == EADDRINUSE) {
        say_taken(doctor, name, text, &address);
    } else if (reason) {
        doctor_say(doctor, FINDING_BAD, "ports", fix, "%s " STR_FMT ": %s", name, STR_ARG(text),
                   strerrordesc_np(reason));
    } else {
        doctor_say(doctor, FINDING_GOOD, "ports", NULL, "%s " STR_FMT " is free", name,
                   STR_ARG(text));
    }
}

void doctor_ports(struct doctor *doctor) {
    for (size_t i = 0; i < contracts.count; i++) {
        const struct contract *contract = contracts.rows[i];
        if (!contract_is_wanted(contract, doctor->config)) continue;
        for (size_t n = 0; n < contract->listener_count; n++) {
            const struct contract_listener *listener = &contract->listeners[n];
            check_port(doctor, listener->name, listener->address(doctor->config));
        }
    }
}

/* --- open files --------------------------------------------------------------------------- */

/* Loops, the store's files, the log, and a margin. */
#define FILES_OF_OUR_OWN 64

void doctor_files(struct doctor *doctor) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    const struct config *config = doctor->config;
    uint64_t wanted =
        contract_listeners(&contracts, config) * config->limits.server.connections_max +
        4 * config->threads + FILES_OF_OUR_OWN;
    char fix[64];
    snprintf(fix, sizeof(fix), "ulimit -n %llu", (unsigned long long)wanted);
    bool enough = limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted;
    doctor_say(doctor, enough ? FINDING_GOOD : FINDING_BAD, "files", enough ? NULL : fix,
               "%llu may be open, full listeners need %llu", (unsigned long long)limit.rlim_cur,
               (unsigned long long)wanted);
}

/* --- memory ------------------------------------------------------------------------------- */

#define MEMORY_LEAST_BYTES (64 * MIB)

void doctor_memory(struct doctor *doctor) {
    uint64_t bytes;
    if (!machine_memory_available(&bytes)) return;
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

/* --- speech ------------------------------------------------------------------------------- */

/* Only nimi.runtime.v1 uses speech, so without it nothing is missing. */
void doctor_speech(struct doctor *doctor) {
    struct buf path;
    buf_init(&path, 64 * KIB);
    bool found = media_local_find(&path);
    doctor_say(doctor, found ? FINDING_GOOD : FINDING_NOTE, "speech",
               found ? NULL : "apt-get install espeak-ng",
               found ? "espeak-ng is %s" : "espeak-ng is not installed: no local speech%s",
               found ? path.at : "");
    buf_done(&path);
}

/* --- commands ----------------------------------------------------------------------------- */

/* Where no folder is set for exec, nothing is missing. */
void doctor_exec(struct doctor *doctor) {
    struct err why;
    if (!doctor->config->tools.exec.root.len) return;
    bool works = exec_works(&why);
    doctor_say(doctor, works ? FINDING_GOOD : FINDING_BAD, "exec",
               works ? NULL : "apt-get install bubblewrap libseccomp2", "%s",
               works ? "commands run in a sandbox" : why.text);
}
