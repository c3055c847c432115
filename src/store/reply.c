#include "store/reply.h"

#include "store/task.h"

/* Writes of one loop that were answered together are one mail, chained by `next`. */
static void tell_written(void *ctx) {
    for (struct store_write *write = ctx, *next; write; write = next) {
        next = write->next;
        write->on_written(write, write->failed.code ? &write->failed : NULL, write->ctx);
    }
}

/* Remove from *writes those with the same home as the first one, in order. */
static struct store_write *take_home(struct store_write **writes) {
    struct store_write *first = *writes, **last = &first, **rest = writes;
    struct loop *home = first->home;
    for (struct store_write *write = first, *next; write; write = next) {
        next = write->next;
        struct store_write ***list = write->home == home ? &last : &rest;
        **list = write;
        *list = &write->next;
    }
    *last = NULL;
    *rest = NULL;
    return first;
}

void reply_writes(struct store_write *writes) {
    while (writes) {
        struct store_write *group = take_home(&writes);
        loop_post(group->home, &group->mail, tell_written, group);
    }
}

static void tell_loaded(void *ctx) {
    struct store_load *load = ctx;
    load->on_loaded(load, load->failed.code ? &load->failed : NULL, load->ctx);
}

void reply_loads(struct store_load *loads) {
    for (struct store_load *load = loads, *next; load; load = next) {
        next = load->next;
        loop_post(load->home, &load->mail, tell_loaded, load);
    }
}

static void tell_done(void *ctx) {
    struct store_task *task = ctx;
    task->on_done(task->failed.code ? &task->failed : NULL, task->ctx);
}

void reply_tasks(struct store_task *tasks) {
    for (struct store_task *task = tasks, *next; task; task = next) {
        next = task->next;
        if (task->counted) atomic_fetch_sub_explicit(task->counted, 1, memory_order_relaxed);
        loop_post(task->home, &task->mail, tell_done, task);
    }
}

void reply_writes_failed(struct store_write *writes, const struct err *why) {
    for (struct store_write *write = writes; write; write = write->next) write->failed = *why;
    reply_writes(writes);
}

void reply_loads_failed(struct store_load *loads, const struct err *why) {
    for (struct store_load *load = loads; load; load = load->next) load->failed = *why;
    reply_loads(loads);
}

void reply_tasks_failed(struct store_task *tasks, const struct err *why) {
    for (struct store_task *task = tasks; task; task = task->next) task->failed = *why;
    reply_tasks(tasks);
}
