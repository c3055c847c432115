#include "store/mark.h"

#include "base/log.h"
#include "store/sum.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define MARK_BYTES 96
#define MARK_OWNER UINT64_C(0x6B72616D) /* "mark"; never a row's owner: no row's sum fits */

/* "synced 0000000000000000042 0000000003 <boot id> <sum>\n", padded. The sum covers everything
 * before it. */
#define BODY_BYTES (MARK_BYTES - 17)

static void read_boot(struct mark *mark) {
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t len = file < 0 ? 0 : read(file, mark->boot, sizeof(mark->boot) - 1);
    if (file >= 0) close(file);
    struct str id = str_trim(str_of(mark->boot, len > 0 ? (size_t)len : 0));
    mark->boot[id.len] = '\0';
}

static void write_body(const struct mark *mark, int64_t newest, int64_t epoch,
                       char body[static BODY_BYTES + 1]) {
    int len = snprintf(body, BODY_BYTES + 1, "%s %" PRId64 " %" PRId64 " %s",
                       mark->synced ? "synced" : "loose", newest, epoch, mark->boot);
    memset(body + len, ' ', BODY_BYTES - (size_t)len);
}

static bool parse(struct mark *mark, struct str text) {
    char sum[17];
    if (text.len != MARK_BYTES) return false;
    snprintf(sum, sizeof(sum), "%016" PRIx64, sum_of(MARK_OWNER, str_head(text, BODY_BYTES)));
    if (!str_starts(str_skip(text, BODY_BYTES), str_from(sum))) return false;
    struct str rest, kind = str_split(str_head(text, BODY_BYTES), ' ', &rest);
    struct str newest_text = str_split(rest, ' ', &rest);
    struct str epoch_text = str_split(rest, ' ', &rest);
    int64_t newest, epoch;
    if (!str_to_i64(newest_text, &newest) || !str_to_i64(epoch_text, &epoch)) return false;
    bool same_boot = mark->boot[0] && str_equal(str_trim(rest), str_from(mark->boot));
    if (!str_equal(kind, STR("synced")) && !same_boot) return true;
    mark->newest = newest;
    mark->epoch = epoch;
    return true;
}

bool mark_open(struct mark *mark, const char *folder, bool synced, struct err *e) {
    char path[PATH_MAX], text[MARK_BYTES];
    *mark = (struct mark){.synced = synced};
    read_boot(mark);
    snprintf(path, sizeof(path), "%s/weir.mark", folder);
    mark->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (mark->file < 0)
        return err_set(e, ERR_UNAVAILABLE,
                       "store %s: %s; make its folder writable for this user", path,
                       strerrordesc_np(errno));
    ssize_t len = pread(mark->file, text, sizeof(text), 0);
    if (len > 0 && !parse(mark, str_of(text, (size_t)len)))
        log_warning("%s cannot be read, so a loss at the log's end would go unnoticed", path);
    return true;
}

void mark_close(struct mark *mark) {
    if (mark->file >= 0) close(mark->file);
}

void mark_note(struct mark *mark, int64_t newest, int64_t epoch) {
    char text[MARK_BYTES + 1];
    if (mark->file < 0) return; /* a store of PostgreSQL has none */
    write_body(mark, newest, epoch, text);
    uint64_t sum = sum_of(MARK_OWNER, str_of(text, BODY_BYTES));
    snprintf(text + BODY_BYTES, MARK_BYTES - BODY_BYTES + 1, "%016" PRIx64 "\n", sum);
    /* If the write fails, the older mark remains, which is still true. */
    ssize_t written = pwrite(mark->file, text, MARK_BYTES, 0);
    (void)written;
}
