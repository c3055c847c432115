#include "base/program.h"

#include "base/machine.h"
#include "base/str.h"

#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

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
    if (!machine_is_traced()) dl_iterate_phdr(let_go, NULL);
}
