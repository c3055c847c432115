#include "base/machine.h"

#include "base/attr.h"
#include "base/str.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* Control groups version 2, at the mount point that a container sees as its own; then version
 * 1. */
static const char *const group_files[] = {"/sys/fs/cgroup/memory.max",
                                          "/sys/fs/cgroup/memory/memory.limit_in_bytes"};

/* The number of kB after `key` ("MemAvailable:"), or a whole file that is one number (key
 * ""). */
static bool machine_read_number(const char *path, const char *key, uint64_t *ret) {
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

/* The limit of the control group if it is lower than `bytes`, else `bytes`. */
static uint64_t within_group(uint64_t bytes) {
    uint64_t ceiling;
    for (size_t i = 0; i < ARRAY_LEN(group_files); i++) {
        if (machine_read_number(group_files[i], "", &ceiling))
            return ceiling < bytes ? ceiling : bytes;
    }
    return bytes;
}

uint64_t machine_memory_bytes(void) {
    uint64_t total_kb;
    struct rlimit space;
    if (!machine_read_number("/proc/meminfo", "MemTotal:", &total_kb)) return 0;
    uint64_t bytes = within_group(total_kb * KIB);
    bool bounded = getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;
    return bounded && space.rlim_cur < bytes ? (uint64_t)space.rlim_cur : bytes;
}

bool machine_memory_available(uint64_t *ret) {
    uint64_t free_kb;
    if (!machine_read_number("/proc/meminfo", "MemAvailable:", &free_kb)) return false;
    *ret = within_group(free_kb * KIB);
    return true;
}

static bool read_status_kb(const char *key, uint64_t *ret) {
    uint64_t kb;
    if (!machine_read_number("/proc/self/status", key, &kb)) return false;
    *ret = kb * KIB;
    return true;
}

bool machine_resident_bytes(uint64_t *ret) {
    return read_status_kb("VmRSS:", ret);
}

bool machine_private_bytes(uint64_t *ret) {
    return read_status_kb("RssAnon:", ret);
}

uint64_t machine_used_us(void) {
    struct timespec used;
    int failed = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    assert(!failed);
    (void)failed;
    return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

bool machine_is_traced(void) {
    uint64_t tracer;
    return !machine_read_number("/proc/self/status", "TracerPid:", &tracer) || tracer;
}
