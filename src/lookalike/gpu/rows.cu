// Which signatures are near: exact distances by counting bits, on any card.
//
// `near_rows` looks where `near_tiles` wrote something down; `every_row` looks everywhere: for one
// query, where there are no tensor instructions for bits, and where tests want to know.
//
// What is found is one number: query in the high 16 bits, distance in the next 13, position in the
// lowest 35. Sorting them sorts by query, distance and position.
//
// Given to the compiler: STORED, PACK, STEPS, COLUMNS, PIECE as in tiles.cu.

#define TILE_BYTES (32 * STEPS * COLUMNS)

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct Asked {
    const unsigned char* tiles;
    const u16* places;       // where each signature of the tiles stood in its piece
    u64 count;               // signatures in the tiles
    u64 base;                // the position of the first of them in the collection
    const u32* allowed;      // a bit for each position here; null: all are
    const unsigned char* queries;
    const int* cuts;         // of each query: the largest distance wanted; -1: none
    const u64* behind;       // of each query: only what lies behind this position; null: all
    u64* found;
    u64 room;
    u64* taken;
};

// The distance of a query to one signature of a tile: piece after piece of 16 bytes, or half a one.
__device__ __forceinline__ int distance(const unsigned char* tile, u32 row, u32 side, const unsigned char* query) {
#if STORED < 16
    const uint2 x = *(const uint2*)(tile + side / 2 * (16 * COLUMNS) + row * 16 + side % 2 * 8);
    const uint2 q = *(const uint2*)query;
    return __popc(x.x ^ q.x) + __popc(x.y ^ q.y);
#else
    int far = 0;
#pragma unroll 8
    for (u32 part = 0; part < STORED / 16; ++part) {
        const uint4 x = *(const uint4*)(tile + (side * (STORED / 16) + part) * (16 * COLUMNS) + row * 16);
        const uint4 q = *(const uint4*)(query + part * 16);
        far += __popc(x.x ^ q.x) + __popc(x.y ^ q.y) + __popc(x.z ^ q.z) + __popc(x.w ^ q.w);
    }
    return far;
#endif
}

// Writes down the hits of a warp, all of whose lanes come.
__device__ __forceinline__ void keep(const Asked& asked, bool near, u32 query, int far, u64 slot) {
    u64 position = 0;
    if (near) {
        const u64 here = slot / PIECE * PIECE + asked.places[slot];
        if (asked.allowed && !(asked.allowed[here / 32] >> here % 32 & 1)) near = false;
        position = asked.base + here;
        if (asked.behind && position <= asked.behind[query]) near = false;
    }
    const u32 hits = __ballot_sync(~0u, near), lane = threadIdx.x % 32;
    if (!hits) return;
    u64 place = 0;
    if (lane == 0) place = atomicAdd(asked.taken, (u64)__popc(hits));
    place = __shfl_sync(~0u, place, 0) + __popc(hits & ((1u << lane) - 1));
    if (near && place < asked.room) asked.found[place] = (u64)query << 48 | (u64)far << 35 | position;
}

#define ASKED                                                                                                 \
    const unsigned char *tiles, const u16 *places, u64 count, u64 base, const u32 *allowed,                   \
        const unsigned char *queries, const int *cuts, const u64 *behind, u64 *found, u64 room, u64 *taken
#define ASKED_FOR \
    const Asked asked { tiles, places, count, base, allowed, queries, cuts, behind, found, room, taken }

// One warp for each note, one lane for each column of its quarter.
extern "C" __global__ void near_rows(ASKED, const u64* notes, u64 note_room, const u64* noted) {
    ASKED_FOR;
    const u64 end = *noted < note_room ? *noted : note_room;
    const u64 warps = (u64)gridDim.x * blockDim.x / 32;
    const u32 lane = threadIdx.x % 32;
    for (u64 at = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / 32; at < end; at += warps) {
        const u64 note = notes[at], place = note & (((u64)1 << 46) - 1), tile = place / 4;
        const u32 query = (u32)(note >> 46) / PACK, side = (u32)(note >> 46) % PACK;
        const u32 column = lane / 2 * 8 + (u32)(place % 4) * 2 + lane % 2;
        const u64 slot = (tile * COLUMNS + column) * PACK + side;
        int far = 0;
        bool near = column < COLUMNS && slot < count;
        if (near) {
            far = distance(tiles + tile * TILE_BYTES, column, side, queries + (u64)query * STORED);
            near = far <= cuts[query];
        }
        keep(asked, near, query, far, slot);
    }
}

// One thread for each row of a tile. Blocks share tiles (x) and queries (y).
extern "C" __global__ void __launch_bounds__(COLUMNS, 2048 / COLUMNS) every_row(ASKED, u64 first_tile, u64 tile_count,
                                                                u64 tile_step, u32 query_count) {
    ASKED_FOR;
    for (u64 i = blockIdx.x; i < tile_count; i += gridDim.x) {
        const u64 tile = first_tile + i * tile_step;
        for (u32 query = blockIdx.y; query < query_count; query += gridDim.y) {
#pragma unroll
            for (u32 side = 0; side < PACK; ++side) {
                const u64 slot = (tile * COLUMNS + threadIdx.x) * PACK + side;
                const int far = distance(tiles + tile * TILE_BYTES, threadIdx.x, side, queries + (u64)query * STORED);
                keep(asked, slot < count && far <= cuts[query], query, far, slot);
            }
        }
    }
}
