#include "proc.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

bool proc_cpu_ns(pid_t pid, uint64_t *ret, unsigned *ret_threads, struct err *e) {
    char path[320];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    if (!tasks) return err_set(e, ERR_NOT_FOUND, "%s: %s", path, strerror(errno));
    uint64_t sum = 0;
    unsigned threads = 0;
    for (struct dirent *task; (task = readdir(tasks));) {
        uint64_t ns = 0;
        if (task->d_name[0] == '.') continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", (int)pid, task->d_name);
        FILE *file = fopen(path, "re");
        if (!file) continue; /* the thread ended between the two looks */
        if (fscanf(file, "%" SCNu64, &ns) == 1) threads++;
        fclose(file);
        sum += ns;
    }
    closedir(tasks);
    *ret = sum;
    if (ret_threads) *ret_threads = threads;
    return true;
}

bool proc_memory(pid_t pid, struct proc_memory *ret, struct err *e) {
    char path[64], line[256];
    snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file) return err_set(e, ERR_NOT_FOUND, "%s: %s", path, strerror(errno));
    *ret = (struct proc_memory){0};
    while (fgets(line, sizeof(line), file)) {
        (void)sscanf(line, "Rss: %" SCNu64, &ret->rss_kb);
        (void)sscanf(line, "Pss: %" SCNu64, &ret->pss_kb);
    }
    fclose(file);
    return ret->rss_kb > 0 || err_set(e, ERR_INTERNAL, "%s says nothing", path);
}

bool proc_machine_busy_ns(uint64_t *ret, struct err *e) {
    FILE *file = fopen("/proc/stat", "re");
    if (!file) return err_set(e, ERR_NOT_FOUND, "/proc/stat: %s", strerror(errno));
    uint64_t user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softirq = 0;
    int got = fscanf(file,
                     "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                     " %" SCNu64,
                     &user, &nice, &system, &idle, &wait, &irq, &softirq);
    fclose(file);
    if (got != 7) return err_set(e, ERR_INTERNAL, "/proc/stat does not parse");
    uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    *ret = (user + nice + system + irq + softirq) * tick_ns;
    return true;
}
