#include "base/region.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GUARDS true
#elif defined(__has_feature)
#define GUARDS (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define GUARDS false
#endif

#define AREA_BYTES (REGIONS_AN_AREA * REGION_BYTES)
#define ALL_FREE UINT64_MAX /* of an area of 64 */
#define SHARED_BYTES (REGION_SHARED_PAGES * REGION_PAGE_BYTES)
#define ALL_PAGES ((1u << REGION_PAGES) - 1)

struct region_area {
    struct list link; /* in pool->areas while it has a free region */
    char *at;
    uint64_t free; /* bits */
};

/* --- areas -------------------------------------------------------------------------------- */

static struct region_area *area_new(struct region_pool *pool) {
    if (pool->areas_max && pool->area_count == pool->areas_max) return NULL;
    void *at =
        mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return NULL;
    /* A huge page would make all of an area resident by one write. */
    madvise(at, AREA_BYTES, MADV_NOHUGEPAGE);
    struct region_area *area = MEM_NEW(struct region_area);
    area->at = at;
    area->free = ALL_FREE;
    list_init(&area->link);
    list_append(&pool->areas, &area->link);
    pool->area_count++;
    return area;
}

static void area_free(struct region_pool *pool, struct region_area *area) {
    list_remove(&area->link);
    pool->area_count--;
    munmap(area->at, AREA_BYTES);
    free(area);
}

static char *area_take(struct region_area *area) {
    unsigned place = (unsigned)__builtin_ctzll(area->free);
    area->free &= area->free - 1;
    if (area->free == 0) list_remove(&area->link);
    return area->at + place * REGION_BYTES;
}

/* Its pages are zero again. */
static void area_give(struct region_pool *pool, struct region_area *area, char *at) {
    bool was_full = area->free == 0;
    area->free |= (uint64_t)1 << ((size_t)(at - area->at) / REGION_BYTES);
    if (was_full) list_append(&pool->areas, &area->link);
    bool alone = pool->areas.next == &area->link && area->link.next == &pool->areas;
    if (area->free == ALL_FREE && !alone) area_free(pool, area);
}

/* --- the pool ----------------------------------------------------------------------------- */

void region_pool_init(struct region_pool *pool) {
    *pool = (struct region_pool){.can_pack = REGION_BYTES % (size_t)sysconf(_SC_PAGESIZE) == 0};
    list_init(&pool->areas);
}

/* Where it fails, because the system's pages are larger, the bytes are cleared here. */
static void drop_pages(char *at) {
    if (madvise(at, REGION_BYTES, MADV_DONTNEED) != 0) memset(at, 0, REGION_BYTES);
}

void region_pool_rest(struct region_pool *pool) {
    while (pool->kept_count) {
        struct region_kept kept = pool->kept[--pool->kept_count];
        drop_pages(kept.at);
        area_give(pool, kept.area, kept.at);
    }
    LIST_EACH(&pool->areas, link) {
        struct region_area *area = CONTAINER_OF(link, struct region_area, link);
        if (area->free == ALL_FREE) area_free(pool, area);
    }
}

void region_pool_done(struct region_pool *pool) {
    region_pool_rest(pool);
    assert(pool->area_count == 0);
}

bool region_init(struct region *region, struct region_pool *pool) {
    *region = (struct region){.pool = pool};
    if (pool->kept_count) {
        struct region_kept kept = pool->kept[--pool->kept_count];
        region->area = kept.area;
        region->at = kept.at;
        region->dirty_pages = ALL_PAGES;
        return true;
    }
    struct region_area *area = list_empty(&pool->areas)
                                   ? area_new(pool)
                                   : CONTAINER_OF(pool->areas.next, struct region_area, link);
    if (!area) return false;
    region->area = area;
    region->at = area_take(area);
    return true;
}

static void set_access(const struct region *region, int access) {
    if (!GUARDS) return;
    int failed = mprotect(region->at, REGION_BYTES, access);
    assert(!failed);
    (void)failed;
}

void region_done(struct region *region) {
    struct region_pool *pool = region->pool;
    if (!region->at) return;
    if (region->packed) {
        set_access(region, PROT_READ | PROT_WRITE);
        free(region->packed);
        area_give(pool, region->area, region->at);
    } else if (pool->kept_count < REGIONS_KEPT) {
        pool->kept[pool->kept_count++] = (struct region_kept){region->area, region->at};
    } else {
        drop_pages(region->at);
        area_give(pool, region->area, region->at);
    }
    *region = (struct region){0};
}

/* --- blocks of less than a page ----------------------------------------------------------- */

#define UNIT_BYTES 16 /* of which the first block's header is the second half */

enum block_state {
    BLOCK_TAKEN = 0x7461,
    BLOCK_FREE = 0x6672,
};

struct block {
    uint16_t units; /* with this head */
    uint16_t state; /* enum block_state */
    uint16_t next;  /* while it is free: the next one of its size, or 0 */
    uint16_t unused;
};

static struct block *block_at(const struct region *region, size_t unit) {
    return (struct block *)(void *)(region->at + unit * UNIT_BYTES - sizeof(struct block));
}

static struct block *block_of(const void *at) {
    return (struct block *)((uintptr_t)at - sizeof(struct block));
}

static void *small_take(struct region *region, size_t size) {
    size_t units = (size + sizeof(struct block) + UNIT_BYTES - 1) / UNIT_BYTES;
    size_t unit = units <= REGION_SIZES ? region->free_at[units] : 0;
    struct block *block;
    if (unit) {
        block = block_at(region, unit);
        region->free_at[units] = block->next;
    } else {
        if (region->shared_bytes + (units + 1) * UNIT_BYTES > SHARED_BYTES) return NULL;
        unit = region->shared_bytes / UNIT_BYTES + 1;
        block = block_at(region, unit);
        region->shared_bytes = (uint16_t)(region->shared_bytes + units * UNIT_BYTES);
        block->units = (uint16_t)units;
    }
    block->state = BLOCK_TAKEN;
    return block + 1;
}

static void small_give(struct region *region, char *at) {
    struct block *block = block_of(at);
    assert(block->state == BLOCK_TAKEN);
    block->state = BLOCK_FREE;
    if (block->units > REGION_SIZES) return;
    block->next = region->free_at[block->units];
    region->free_at[block->units] = (uint16_t)((size_t)(at - region->at) / UNIT_BYTES);
}

/* --- blocks of pages ---------------------------------------------------------------------- */

static size_t pages_of(size_t size) {
    return (size + REGION_PAGE_BYTES - 1) / REGION_PAGE_BYTES;
}

static unsigned page_bits(size_t first, size_t count) {
    return ((1u << count) - 1) << first;
}

/* The first of `count` free pages, or REGION_PAGES. */
static size_t find_pages(const struct region *region, size_t count) {
    for (size_t first = REGION_SHARED_PAGES; first + count <= REGION_PAGES; first++)
        if ((region->taken_pages & page_bits(first, count)) == 0) return first;
    return REGION_PAGES;
}

static void *large_take(struct region *region, size_t count) {
    size_t first = find_pages(region, count);
    if (first == REGION_PAGES) return NULL;
    region->taken_pages |= (uint8_t)page_bits(first, count);
    region->block_pages[first] = (uint8_t)count;
    return region->at + first * REGION_PAGE_BYTES;
}

static void large_clear(const struct region *region, char *at) {
    size_t first = (size_t)(at - region->at) / REGION_PAGE_BYTES;
    for (size_t i = 0; i < region->block_pages[first]; i++)
        if (region->dirty_pages & page_bits(first + i, 1))
            memset(at + i * REGION_PAGE_BYTES, 0, REGION_PAGE_BYTES);
}

static void large_give(struct region *region, const char *at) {
    size_t offset = (size_t)(at - region->at), first = offset / REGION_PAGE_BYTES;
    size_t count = region->block_pages[first];
    assert(offset % REGION_PAGE_BYTES == 0 && count > 0);
    region->block_pages[first] = 0;
    region->taken_pages &= (uint8_t)~page_bits(first, count);
    region->dirty_pages |= (uint8_t)page_bits(first, count);
}

/* --- both --------------------------------------------------------------------------------- */

static bool is_small(const struct region *region, const void *at) {
    return (size_t)((const char *)at - region->at) < SHARED_BYTES;
}

void *region_take(struct region *region, size_t size) {
    assert(!region->packed);
    if (size < REGION_PAGE_BYTES) return small_take(region, size);
    return size <= REGION_BYTES ? large_take(region, pages_of(size)) : NULL;
}

void *region_take_zero(struct region *region, size_t size) {
    char *at = region_take(region, size);
    if (!at) return NULL;
    if (is_small(region, at))
        memset(at, 0, size);
    else
        large_clear(region, at);
    return at;
}

void region_give(struct region *region, void *at) {
    assert(!region->packed);
    if (is_small(region, at))
        small_give(region, at);
    else
        large_give(region, at);
}

size_t region_block_bytes(const struct region *region, const void *at) {
    if (is_small(region, at)) return block_of(at)->units * UNIT_BYTES - sizeof(struct block);
    size_t first = (size_t)((const char *)at - region->at) / REGION_PAGE_BYTES;
    return region->block_pages[first] * REGION_PAGE_BYTES;
}

/* --- packing ------------------------------------------------------------------------------ */

#define WORDS_A_PAGE (REGION_PAGE_BYTES / sizeof(uint64_t))
#define MASKS_A_PAGE (WORDS_A_PAGE / 64)

/* Of each page in `pages` its masks, which say what words are not zero, and then those words. */
struct region_packed {
    size_t bytes; /* of all this */
    unsigned pages;
    uint64_t words[];
};

struct masks {
    uint64_t of[REGION_PAGES][MASKS_A_PAGE];
};

static uint64_t mask_of(const uint64_t *words) {
    uint64_t any = 0, mask = 0;
    for (size_t i = 0; i < 64; i++) any |= words[i];
    if (any == 0) return 0;
    for (size_t i = 0; i < 64; i++) mask |= (uint64_t)(words[i] != 0) << i;
    return mask;
}

/* Returns how many of the first `len` words of the page are not zero. */
static size_t look_at_page(const uint64_t *words, size_t len, uint64_t *masks) {
    size_t count = 0;
    for (size_t i = 0; i < MASKS_A_PAGE; i++) {
        masks[i] = i * 64 < len ? mask_of(words + i * 64) : 0;
        count += (size_t)__builtin_popcountll(masks[i]);
    }
    return count;
}

/* How many words at the beginning of a page belong to blocks. */
static size_t words_in_use(const struct region *region, size_t page) {
    if (page >= REGION_SHARED_PAGES)
        return region->taken_pages & page_bits(page, 1) ? WORDS_A_PAGE : 0;
    size_t words = (region->shared_bytes + sizeof(struct block)) / sizeof(uint64_t);
    return words > page * WORDS_A_PAGE ? words - page * WORDS_A_PAGE : 0;
}

static const uint64_t *page_words(const struct region *region, size_t page) {
    return (const uint64_t *)(const void *)(region->at + page * REGION_PAGE_BYTES);
}

static uint64_t *copy_page(const uint64_t *words, const uint64_t *masks, uint64_t *to) {
    memcpy(to, masks, MASKS_A_PAGE * sizeof(uint64_t));
    to += MASKS_A_PAGE;
    for (size_t i = 0; i < MASKS_A_PAGE; i++)
        for (uint64_t mask = masks[i]; mask; mask &= mask - 1)
            *to++ = words[i * 64 + (size_t)__builtin_ctzll(mask)];
    return to;
}

static const uint64_t *put_page(const uint64_t *from, uint64_t *words) {
    const uint64_t *masks = from;
    from += MASKS_A_PAGE;
    for (size_t i = 0; i < MASKS_A_PAGE; i++)
        for (uint64_t mask = masks[i]; mask; mask &= mask - 1)
            words[i * 64 + (size_t)__builtin_ctzll(mask)] = *from++;
    return from;
}

static struct region_packed *packed_new(const struct region *region) {
    struct masks masks = {0};
    unsigned pages = 0;
    size_t words = 0;
    for (size_t page = 0; page < REGION_PAGES; page++) {
        size_t count =
            look_at_page(page_words(region, page), words_in_use(region, page), masks.of[page]);
        if (count == 0) continue;
        pages |= page_bits(page, 1);
        words += MASKS_A_PAGE + count;
    }
    size_t bytes = sizeof(struct region_packed) + words * sizeof(uint64_t);
    struct region_packed *packed = mem_alloc(bytes);
    packed->bytes = bytes;
    packed->pages = pages;
    uint64_t *to = packed->words;
    for (size_t page = 0; page < REGION_PAGES; page++)
        if (pages & page_bits(page, 1))
            to = copy_page(page_words(region, page), masks.of[page], to);
    return packed;
}

/* What they held need not be kept. */
static void clear_free_blocks(const struct region *region) {
    size_t end = region->shared_bytes / UNIT_BYTES + 1;
    for (size_t unit = 1; unit < end;) {
        struct block *block = block_at(region, unit);
        if (block->state == BLOCK_FREE)
            memset(block + 1, 0, block->units * UNIT_BYTES - sizeof(*block));
        unit += block->units;
    }
}

void region_pack(struct region *region) {
    if (!region->at || region->packed || !region->pool->can_pack) return;
    clear_free_blocks(region);
    region->packed = packed_new(region);
    drop_pages(region->at);
    region->dirty_pages = 0;
    set_access(region, PROT_NONE);
}

void region_unpack(struct region *region) {
    struct region_packed *packed = region->packed;
    if (!packed) return;
    region->packed = NULL;
    set_access(region, PROT_READ | PROT_WRITE);
    const uint64_t *from = packed->words;
    for (size_t page = 0; page < REGION_PAGES; page++)
        if (packed->pages & page_bits(page, 1))
            from = put_page(from, (uint64_t *)(void *)(region->at + page * REGION_PAGE_BYTES));
    free(packed);
}

size_t region_packed_bytes(const struct region *region) {
    return region->packed ? region->packed->bytes : 0;
}
