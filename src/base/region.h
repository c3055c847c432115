/* region: the memory of one owner, which can be packed while the owner rests.
 *
 * A library that is given an allocator keeps its state in blocks that must not move. A region is
 * a fixed range of addresses for such blocks. While nobody calls the library, the region may be
 * packed: what its pages hold is copied to the heap without the zeros, and the pages go back to
 * the system. Unpacking puts the same bytes at the same places.
 *
 *     region_init ─▶ region_take, region_give ... ─▶ region_pack      pages: none
 *                          ▲                             │            heap: what is not zero
 *                          └──────── region_unpack ◀─────┘
 *
 * Pages are zero until they are written, so a large block costs only what is used of it: a block
 * of a page or more begins on a page. Smaller ones share the first pages, with a list of free
 * blocks for each size.
 *
 * Memory   regions are cut from mapped areas of REGIONS_AN_AREA; an area whose regions are all
 *          free is unmapped. A pool keeps some free regions with their pages for the next owner.
 *          Under a sanitizer a packed region is not accessible, so that a forgotten
 *          region_unpack() is a crash and not a wrong byte.
 * Threads  a pool and its regions belong to one thread.
 */
#ifndef WEIR_BASE_REGION_H
#define WEIR_BASE_REGION_H

#include "base/attr.h"
#include "base/list.h"

#include <stdint.h>

#define REGION_PAGE_BYTES (4 * KIB)
#define REGION_PAGES 8
#define REGION_BYTES (REGION_PAGES * REGION_PAGE_BYTES)
#define REGION_SHARED_PAGES 2 /* for blocks of less than a page */
#define REGION_SIZES 33       /* that have a list of free blocks: 8, 24, 40 ... bytes */
#define REGION_LISTED_MAX_BYTES (REGION_SIZES * 16 - 8)
#define REGIONS_AN_AREA 64
#define REGIONS_KEPT 32

struct region_area;

struct region_kept {
    struct region_area *area;
    char *at;
};

struct region_pool {
    struct list areas; /* that have a free region */
    size_t area_count;
    size_t areas_max; /* 0: as many as the system has memory for */
    struct region_kept kept[REGIONS_KEPT];
    size_t kept_count;
    bool can_pack; /* the system's pages are not larger than a region */
};

struct region {
    struct region_pool *pool;
    struct region_area *area;
    char *at;                           /* NULL: there is none */
    struct region_packed *packed;       /* not NULL: the pages are gone */
    uint16_t shared_bytes;              /* of the shared pages that blocks have had */
    uint16_t free_at[REGION_SIZES + 1]; /* the first free block of a size, in 16 bytes; or 0 */
    uint8_t block_pages[REGION_PAGES];  /* of the block that begins at a page */
    uint8_t taken_pages, dirty_pages;   /* bits; a free page that is dirty is not zero */
};

void region_pool_init(struct region_pool *pool);
void region_pool_done(struct region_pool *pool); /* all regions are free */

/* Give back the memory of the free regions that are kept. */
void region_pool_rest(struct region_pool *pool);

/* A region without blocks. False: the system has no memory for it, and there is nothing to end. */
MUST_CHECK bool region_init(struct region *region, struct region_pool *pool);

/* Ends its blocks too. Packed or not; harmless where region_init() failed. */
void region_done(struct region *region);

/* A block of `size` bytes, aligned to 16. NULL: the region has no room for it. One that is
 * smaller than a page and larger than REGION_LISTED_MAX_BYTES is not used again when it is given
 * back: take it only for as long as the region lasts. */
void *region_take(struct region *region, size_t size);
void *region_take_zero(struct region *region, size_t size);
void region_give(struct region *region, void *at);

static inline bool region_has(const struct region *region, const void *at) {
    return (uintptr_t)at - (uintptr_t)region->at < REGION_BYTES;
}

/* How many bytes a block has: at least as many as were asked for. */
size_t region_block_bytes(const struct region *region, const void *at);

/* Nothing reads or writes the blocks of a packed region. Packing one twice, or unpacking one that
 * is not packed, does nothing; nor does packing where pages are larger than a region. */
void region_pack(struct region *region);
void region_unpack(struct region *region);

static inline bool region_is_packed(const struct region *region) {
    return region->packed != NULL;
}

/* What a packed region holds in the heap. */
size_t region_packed_bytes(const struct region *region);

#endif
