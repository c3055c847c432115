#include "client/secure.h"

#include "base/mem.h"
#include "base/text.h"
#include "client/place.h"
#include "loop/job.h"
#include "tls/records.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>

/* --- the process's ------------------------------------------------------------------------ */

struct authorities {
    atomic_uint refs;
    pthread_mutex_t lock;     /* of the next one; held while files are read */
    struct trust *trust;      /* NULL: not read yet */
    struct text file, folder; /* from the setting; both empty: none */
};

struct authorities *authorities_new(void) {
    struct authorities *authorities = MEM_NEW(struct authorities);
    atomic_init(&authorities->refs, 1);
    pthread_mutex_init(&authorities->lock, NULL);
    return authorities;
}

static struct authorities *authorities_ref(struct authorities *authorities) {
    atomic_fetch_add(&authorities->refs, 1);
    return authorities;
}

void authorities_unref(struct authorities *authorities) {
    if (!authorities || atomic_fetch_sub(&authorities->refs, 1) != 1) return;
    trust_unref(authorities->trust);
    text_done(&authorities->file);
    text_done(&authorities->folder);
    pthread_mutex_destroy(&authorities->lock);
    free(authorities);
}

static struct str environment(const char *name) {
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes our environment */
    const char *value = getenv(name);
    return value ? str_from(value) : STR_EMPTY;
}

/* A path that does not exist counts as a file, so that reading it reports the error. */
void authorities_set(struct authorities *authorities, struct str path) {
    struct stat found;
    struct text *kept = &authorities->file;
    if (path.len == 0) return;
    char *name = str_dup(path);
    if (stat(name, &found) == 0 && S_ISDIR(found.st_mode)) kept = &authorities->folder;
    free(name);
    *kept = text_copy(path);
}

struct trust_options authorities_source(const struct authorities *authorities) {
    if (authorities->file.len || authorities->folder.len)
        return (struct trust_options){text_str(authorities->file),
                                      text_str(authorities->folder)};
    return (struct trust_options){environment("SSL_CERT_FILE"), environment("SSL_CERT_DIR")};
}

/* Blocks. */
static bool authorities_read(struct authorities *authorities, struct trust **ret,
                             struct err *e) {
    const struct trust_options options = authorities_source(authorities);
    pthread_mutex_lock(&authorities->lock);
    bool good = authorities->trust || trust_load(&options, &authorities->trust, e);
    if (good) *ret = trust_ref(authorities->trust);
    pthread_mutex_unlock(&authorities->lock);
    return good;
}

/* --- on a thread -------------------------------------------------------------------------- */

struct secure_load {
    struct job job;
    struct secure *secure; /* NULL: it has gone */
    struct authorities *authorities;
    struct trust *trust; /* or `why` */
    struct err why;
};

static void secure_work(void *ctx) {
    struct secure_load *load = ctx;
    (void)authorities_read(load->authorities, &load->trust, &load->why); /* NULL: failed */
    trust_leave_thread();
}

static void load_free(struct secure_load *load) {
    trust_unref(load->trust);
    authorities_unref(load->authorities);
    free(load);
}

/* Report to all current waits; each may cancel others, or begin to wait again. */
static void report(struct secure *secure, const struct secure_load *load) {
    struct list ready, *link;
    list_init(&ready);
    while ((link = list_pop(&secure->waiting))) list_append(&ready, link);
    while ((link = list_pop(&ready))) {
        struct secure_wait *wait = CONTAINER_OF(link, struct secure_wait, link);
        wait->fn(secure->trust, secure->trust ? NULL : &load->why, wait->ctx);
    }
}

static void on_loaded(void *ctx) {
    struct secure_load *load = ctx;
    struct secure *secure = load->secure;
    if (secure) {
        secure->load = NULL;
        if (load->trust) secure->trust = trust_ref(load->trust);
    }
    if (secure) report(secure, load);
    load_free(load);
}

/* --- the loop's --------------------------------------------------------------------------- */

void secure_init(struct secure *secure, struct loop *loop, struct authorities *authorities) {
    *secure = (struct secure){.loop = loop, .authorities = authorities_ref(authorities)};
    list_init(&secure->waiting);
    tickets_init(&secure->tickets);
    buf_init(&secure->plain, PLACE_READ_BYTES + 2 * RECORDS_ROOM_BYTES);
}

void secure_leave(struct secure *secure) {
    struct secure_load *load = secure->load;
    assert(list_empty(&secure->waiting));
    secure->load = NULL;
    if (load) load->secure = NULL;
    if (load && job_cancel(&load->job)) load_free(load);
    tickets_done(&secure->tickets);
    trust_unref(secure->trust);
    secure->trust = NULL;
    buf_release(&secure->plain);
}

void secure_done(struct secure *secure) {
    secure_leave(secure);
    authorities_unref(secure->authorities);
    secure->authorities = NULL;
}

struct trust *secure_trust(const struct secure *secure) {
    return secure->trust;
}

void secure_wait_init(struct secure_wait *wait, secure_fn *fn, void *ctx) {
    *wait = (struct secure_wait){.fn = fn, .ctx = ctx};
    list_init(&wait->link);
}

void secure_await(struct secure *secure, struct secure_wait *wait) {
    list_append(&secure->waiting, &wait->link);
    if (secure->load) return;
    struct secure_load *load = secure->load = MEM_NEW(struct secure_load);
    load->secure = secure;
    load->authorities = authorities_ref(secure->authorities);
    job_start(&load->job, secure->loop, secure_work, on_loaded, load);
}

void secure_wait_cancel(struct secure_wait *wait) {
    list_remove(&wait->link);
}
