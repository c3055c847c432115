/* A row of the log from anywhere: sections, and the events in them, are read or refused. What
 * is read is written again and must read the same. */
#include "store/store.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_events(struct str events) {
    struct event event = {0};
    struct err e;
    while (events.len && event_decode(&events, &event, &e)) assert(event.agent.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str rest = str_of(size ? (const void *)data : "", size);
    struct store_section section, again;
    struct buf row;
    bool bad = false;
    buf_init(&row, size + 1);
    while (store_section_next(&rest, &section, &bad)) {
        read_events(section.events);
        buf_clear(&row);
        bool fits = store_section_append(&row, section.run, section.first_seq, section.events);
        assert(fits);
        struct str copy = buf_str(&row);
        bool read = store_section_next(&copy, &again, &bad);
        assert(read && !bad && copy.len == 0);
        assert(again.run == section.run && again.first_seq == section.first_seq);
        assert(str_equal(again.events, section.events));
    }
    assert(bad == (rest.len > 0));
    buf_done(&row);
    return 0;
}
