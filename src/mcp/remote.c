/* A call through the hub: it is made on the hub's loop and answered on the caller's. */
#include "mcp/hub_inner.h"

#include "base/mem.h"

#include <stdlib.h>

/* Has two owners: the loop that began it, and the hub. The last one to release it frees it.
 * Once it is cancelled nothing is sent back, so the loop may end. */
struct mcp_remote {
    struct list link; /* on the hub's loop, while the call is open */
    struct mcp_server *server;
    struct loop *loop;
    atomic_uint refs;
    pthread_mutex_t mutex;
    bool cancelled; /* guarded by the mutex */
    bool over;      /* on the caller's loop: the result was reported */
    struct mail out, back, stop, news;
    struct buf progress; /* under the mutex: the newest one reported */
    bool news_out;       /* under the mutex: `news` is on its way */
    struct mcp_request request;
    struct buf texts;      /* of the request */
    struct mcp_call *call; /* on the hub's loop */
    struct buf result;
    struct err failed;
    mcp_done_fn *done;
    mcp_progress_fn *progress_fn;
    void *ctx;
};

/* Release `count` references. */
static void remote_unref_many(struct mcp_remote *remote, unsigned count) {
    if (atomic_fetch_sub(&remote->refs, count) != count) return;
    mcp_server_unref(remote->server);
    pthread_mutex_destroy(&remote->mutex);
    buf_done(&remote->result);
    buf_done(&remote->progress);
    buf_done(&remote->texts);
    free(remote);
}

static void remote_unref(struct mcp_remote *remote) {
    remote_unref_many(remote, 1);
}

static void remote_report(struct mcp_remote *remote) {
    struct json result = {.kind = JSON_NONE};
    const struct err *failed = remote->failed.code == ERR_NONE ? NULL : &remote->failed;
    struct err e;
    if (!failed && !json_read(buf_str(&remote->result), &result, &e)) failed = &e;
    remote->done(result, failed, remote->ctx);
}

/* On the caller's loop. */
static void on_back(void *ctx) {
    struct mcp_remote *remote = ctx;
    bool cancelled = remote->cancelled; /* only this thread sets it */
    remote->over = true;
    if (!cancelled) remote_report(remote);
    remote_unref_many(remote, cancelled ? 1 : 2); /* the mail's; the owner's once reported */
}

/* --- its progress ------------------------------------------------------------------------- */

/* On the caller's loop. */
static void on_news(void *ctx) {
    struct mcp_remote *remote = ctx;
    struct json params;
    struct err e;
    struct buf text;
    buf_init(&text, SIZE_MAX);
    pthread_mutex_lock(&remote->mutex);
    remote->news_out = false;
    buf_append(&text, buf_str(&remote->progress));
    pthread_mutex_unlock(&remote->mutex);
    bool waits = !remote->cancelled && !remote->over;
    if (waits && json_read(buf_str(&text), &params, &e))
        remote->progress_fn(params, remote->ctx);
    buf_done(&text);
    remote_unref(remote);
}

/* On the hub's loop. What comes while mail is under way replaces what it brings. */
static void on_remote_progress(struct json params, void *ctx) {
    struct mcp_remote *remote = ctx;
    pthread_mutex_lock(&remote->mutex);
    buf_clear(&remote->progress);
    buf_append(&remote->progress, params.raw);
    if (!remote->cancelled && !remote->news_out) {
        remote->news_out = true;
        atomic_fetch_add(&remote->refs, 1);
        loop_post(remote->loop, &remote->news, on_news, remote);
    }
    pthread_mutex_unlock(&remote->mutex);
}

/* Runs on the hub's loop. */
static void on_called(struct json result, const struct err *failed, void *ctx) {
    struct mcp_remote *remote = ctx;
    remote->call = NULL;
    list_remove(&remote->link);
    if (failed) {
        mcp_server_advise(remote->server, failed, &remote->failed);
    } else {
        buf_append(&remote->result, result.raw);
    }
    pthread_mutex_lock(&remote->mutex);
    if (!remote->cancelled) {
        atomic_fetch_add(&remote->refs, 1); /* the mail's own: ours must outlive the mutex */
        loop_post(remote->loop, &remote->back, on_back, remote);
    }
    pthread_mutex_unlock(&remote->mutex);
    remote_unref(remote);
}

static void on_out(void *ctx) {
    struct mcp_remote *remote = ctx;
    list_append(&remote->server->remotes, &remote->link);
    remote->call = mcp_call_start(remote->server->client, &remote->request, on_called, remote);
}

static void on_stop(void *ctx) {
    struct mcp_remote *remote = ctx;
    bool ours = remote->call != NULL;
    if (ours) {
        mcp_call_cancel(remote->call);
        remote->call = NULL;
        list_remove(&remote->link);
    }
    remote_unref_many(remote, ours ? 2 : 1); /* the mail's; the hub's too, if it had a call */
}

void mcp_remote_cut_all(struct mcp_server *server) {
    LIST_EACH(&server->remotes, link) {
        struct mcp_remote *remote = CONTAINER_OF(link, struct mcp_remote, link);
        if (remote->call) mcp_call_cancel(remote->call);
        remote->call = NULL;
        list_remove(&remote->link);
        remote_unref(remote); /* the hub's */
    }
}

struct mcp_remote *mcp_remote_start(struct mcp_server *server, struct loop *loop,
                                    const struct mcp_request *request, mcp_done_fn *done,
                                    void *ctx) {
    struct mcp_remote *remote = MEM_NEW(struct mcp_remote);
    remote->server = mcp_server_ref(server);
    remote->loop = loop;
    atomic_init(&remote->refs, 2);
    pthread_mutex_init(&remote->mutex, NULL);
    struct mcp_request *kept = &remote->request;
    *kept = *request;
    struct str *texts[] = {
        &kept->caller.user, &kept->caller.workspace, &kept->caller.conversation,
        &kept->name,        &kept->params,           &kept->schema};
    buf_keep_texts(&remote->texts, texts, ARRAY_LEN(texts));
    remote->progress_fn = request->progress;
    if (request->progress) remote->request.progress = on_remote_progress;
    buf_init(&remote->progress, 64 * KIB);
    remote->done = done;
    remote->ctx = ctx;
    list_init(&remote->link);
    buf_init(&remote->result, SIZE_MAX);
    if (!mcp_hub_post(server->hub, &remote->out, on_out, remote)) {
        err_set(&remote->failed, ERR_UNAVAILABLE, "the MCP servers have stopped");
        loop_post(loop, &remote->back, on_back, remote);
    }
    return remote;
}

void mcp_remote_cancel(struct mcp_remote *remote) {
    pthread_mutex_lock(&remote->mutex);
    remote->cancelled = true;
    pthread_mutex_unlock(&remote->mutex);
    atomic_fetch_add(&remote->refs, 1);
    bool posted = mcp_hub_post(remote->server->hub, &remote->stop, on_stop, remote);
    remote_unref_many(remote, posted ? 1 : 2); /* the owner's; the mail's if it was not sent */
}
