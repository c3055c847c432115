#include "base/program.h"

#include "base/str.h"

#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool is_traced(void) {
    static const char name[] = "TracerPid:";
    char line[128];
    bool traced = true; /* unless it says so */
    FILE *status = fopen("/proc/self/status", "re");
    if (!status) return true;
    while (fgets(line, sizeof(line), status)) {
        if (strncmp(line, name, sizeof(name) - 1) != 0) continue;
        traced = !str_equal(str_trim(str_from(line + sizeof(name) - 1)), STR("0"));
        break;
    }
    fclose(status);
    return traced;
}

/* A segment that may be written holds relocated addresses, which are in no file. */
static int let_go(struct dl_phdr_info *object, size_t size, void *ctx) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    (void)size;
    (void)ctx;
    if (str_starts(str_from(object->dlpi_name), STR("linux-"))) return 0; /* the kernel's own */
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W)) continue;
        uintptr_t begin = (object->dlpi_addr + segment->p_vaddr) & ~(page - 1);
        uintptr_t end = object->dlpi_addr + segment->p_vaddr + segment->p_memsz;
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): the loader tells numbers */
        madvise((void *)begin, end - begin, MADV_DONTNEED); /* refused: they stay */
    }
    return 0;
}

void program_let_go(void) {
    if (!is_traced()) dl_iterate_phdr(let_go, NULL);
}
