#include "base/program.h"

#include "base/machine.h"
#include "base/str.h"

#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define AT_ONCE 64 /* pages that go together, or stay */

/* Of a page in /proc/self/pagemap. */
#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_SWAPPED (UINT64_C(1) << 62)
#define PAGE_IN_FILE (UINT64_C(1) << 61)

struct program {
    int map; /* /proc/self/pagemap */
    uintptr_t page;
};

/* Whether the same bytes are in a file. They are not in pages that were written to, by a loader, a
 * debugger or a tool that patches code, and not in huge pages to which code was copied. */
static bool are_in_file(const struct program *program, uintptr_t begin, size_t count) {
    uint64_t pages[AT_ONCE];
    off_t at = (off_t)(begin / program->page * sizeof(*pages));
    ssize_t len = pread(program->map, pages, count * sizeof(*pages), at);
    if (len != (ssize_t)(count * sizeof(*pages))) return false;
    for (size_t i = 0; i < count; i++) {
        if (pages[i] & PAGE_SWAPPED) return false;
        if ((pages[i] & PAGE_PRESENT) && !(pages[i] & PAGE_IN_FILE)) return false;
    }
    return true;
}

static void let_go_of(const struct program *program, uintptr_t begin, uintptr_t end) {
    for (size_t count; begin < end; begin += count * program->page) {
        count = (end - begin + program->page - 1) / program->page;
        if (count > AT_ONCE) count = AT_ONCE;
        if (!are_in_file(program, begin, count)) continue;
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives addresses as numbers */
        madvise((void *)begin, count * program->page, MADV_DONTNEED); /* refused: they stay */
    }
}

/* A segment that may be written holds relocated addresses. */
static int let_go(struct dl_phdr_info *object, size_t size, void *ctx) {
    const struct program *program = ctx;
    (void)size;
    if (str_starts(str_from(object->dlpi_name), STR("linux-"))) return 0; /* the kernel's own */
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W)) continue;
        uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
        let_go_of(program, begin & ~(program->page - 1), begin + segment->p_memsz);
    }
    return 0;
}

void program_let_go(void) {
    struct program program = {.page = (uintptr_t)sysconf(_SC_PAGESIZE)};
    if (machine_is_traced()) return;
    program.map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (program.map < 0) return;
    dl_iterate_phdr(let_go, &program);
    close(program.map);
}
