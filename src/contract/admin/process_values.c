#include "contract/admin/process_values.h"

#include "metrics/metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NS_A_S 1e9

static void append_cpu(struct buf *out) {
    struct timespec used;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used)) return;
    metrics_append_value(out, "process_cpu_seconds_total", METRIC_COUNTER,
                         "Processor time of this process.", "",
                         (double)used.tv_sec + (double)used.tv_nsec / NS_A_S);
}

/* The first line of /proc/self/statm: pages of the address space, then those in memory. */
static bool read_pages(unsigned long *ret_all, unsigned long *ret_resident) {
    char line[256];
    FILE *file = fopen("/proc/self/statm", "re");
    bool there = file && fgets(line, sizeof(line), file);
    if (file) fclose(file);
    if (!there) return false;
    char *end;
    *ret_all = strtoul(line, &end, 10);
    *ret_resident = strtoul(end, NULL, 10);
    return *ret_resident > 0;
}

static void append_memory(struct buf *out) {
    unsigned long all, resident;
    if (!read_pages(&all, &resident)) return;
    double page = (double)sysconf(_SC_PAGESIZE);
    metrics_append_value(out, "process_virtual_memory_bytes", METRIC_GAUGE,
                         "Address space of this process.", "", (double)all * page);
    metrics_append_value(out, "process_resident_memory_bytes", METRIC_GAUGE,
                         "Memory of this process that is in use.", "", (double)resident * page);
}

static void append_files(struct buf *out) {
    DIR *folder = opendir("/proc/self/fd");
    size_t count = 0;
    if (!folder) return;
    const struct dirent *entry;
    while ((entry = readdir(folder))) { /* NOLINT(concurrency-mt-unsafe): our own list */
        count += entry->d_name[0] != '.';
    }
    closedir(folder);
    metrics_append_value(out, "process_open_fds", METRIC_GAUGE, "Open file descriptors.", "",
                         (double)(count - 1)); /* without the one that reads the folder */
}

void process_values_append(struct buf *out, double started_s) {
    append_cpu(out);
    append_memory(out);
    append_files(out);
    metrics_append_value(out, "process_start_time_seconds", METRIC_GAUGE,
                         "When this process started, in seconds since 1970.", "", started_s);
}
