#include "fake/close_fake.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

static struct loop *watched;
static unsigned early;

void close_fake_watch(struct loop *loop) {
    watched = loop;
    early = 0;
}

unsigned close_fake_early(void) {
    return early;
}

static void look(uv_handle_t *handle, void *ctx) {
    const int *closed = ctx;
    uv_os_fd_t fd;
    if (handle->type != UV_POLL || uv_is_closing(handle)) return;
    if (uv_fileno(handle, &fd) == 0 && fd == *closed) early++;
}

/* In front of the next one: the C library's, or a sanitizer's. */
int close(int fd) {
    int (*next)(int) = NULL;
    void *found = dlsym(RTLD_NEXT, "close");
    memcpy(&next, &found, sizeof(next));
    if (watched) uv_walk(loop_uv(watched), look, &fd);
    return next(fd);
}
