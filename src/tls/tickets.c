#include "tls/tickets.h"

#include "base/mem.h"
#include "base/text.h"
#include "tls/openssl.h"

#include <stdlib.h>

struct ticket {
    struct list link;
    struct text host;
    uint16_t port;
    uint64_t came_ms;
    SSL_SESSION *session;
};

void tickets_init(struct tickets *tickets) {
    list_init(&tickets->all);
    tickets->count = 0;
}

static void ticket_free(struct ticket *ticket) {
    if (ticket->session) openssl_loaded()->SSL_SESSION_free(ticket->session);
    text_done(&ticket->host);
    free(ticket);
}

static void ticket_drop(struct tickets *tickets, struct ticket *ticket) {
    list_remove(&ticket->link);
    tickets->count--;
    ticket_free(ticket);
}

void tickets_done(struct tickets *tickets) {
    LIST_EACH(&tickets->all, link) ticket_free(CONTAINER_OF(link, struct ticket, link));
    list_init(&tickets->all);
    tickets->count = 0;
}

static bool ticket_is_of(const struct ticket *ticket, struct str host, uint16_t port) {
    return ticket->port == port && str_equal_nocase(text_str(ticket->host), host);
}

/* Drop the oldest ticket of this server, or of all, if the limit is reached. */
static void tickets_make_room(struct tickets *tickets, struct str host, uint16_t port) {
    struct ticket *oldest = NULL;
    size_t count = 0;
    for (struct list *at = tickets->all.prev; at != &tickets->all; at = at->prev) {
        struct ticket *ticket = CONTAINER_OF(at, struct ticket, link);
        if (!ticket_is_of(ticket, host, port)) continue;
        oldest = ticket;
        count++;
    }
    if (count >= TICKETS_SERVER_MAX) ticket_drop(tickets, oldest);
    if (tickets->count >= TICKETS_MAX)
        ticket_drop(tickets, CONTAINER_OF(tickets->all.next, struct ticket, link));
}

static void drop_old(struct tickets *tickets, uint64_t now_ms) {
    LIST_EACH(&tickets->all, link) {
        struct ticket *ticket = CONTAINER_OF(link, struct ticket, link);
        if (now_ms - ticket->came_ms < TICKETS_AGE_MS) break;
        ticket_drop(tickets, ticket);
    }
}

void tickets_put(struct tickets *tickets, struct str host, uint16_t port, SSL_SESSION *session,
                 uint64_t now_ms) {
    drop_old(tickets, now_ms);
    tickets_make_room(tickets, host, port);
    struct ticket *ticket = MEM_NEW(struct ticket);
    ticket->host = text_copy(host);
    ticket->port = port;
    ticket->came_ms = now_ms;
    ticket->session = session;
    list_append(&tickets->all, &ticket->link);
    tickets->count++;
}

/* Before TLS 1.3 servers rarely issue a new ticket, so the old one stays for reuse. */
static SSL_SESSION *tickets_take_out(struct tickets *tickets, struct ticket *ticket) {
    const struct openssl *ssl = openssl_loaded();
    SSL_SESSION *session = ticket->session;
    if (ssl->SSL_SESSION_get_protocol_version(session) < TLS1_3_VERSION) {
        ssl->SSL_SESSION_up_ref(session);
        return session;
    }
    ticket->session = NULL;
    ticket_drop(tickets, ticket);
    return session;
}

SSL_SESSION *tickets_take(struct tickets *tickets, struct str host, uint16_t port,
                          uint64_t now_ms) {
    drop_old(tickets, now_ms);
    for (struct list *at = tickets->all.prev; at != &tickets->all; at = at->prev) {
        struct ticket *ticket = CONTAINER_OF(at, struct ticket, link);
        if (ticket_is_of(ticket, host, port)) return tickets_take_out(tickets, ticket);
    }
    return NULL;
}
