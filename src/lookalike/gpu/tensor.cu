// Where signatures near enough to a query may be: the binary tensor instructions of sm_90.
//
// The collection lies in tiles (tiles.cu). A row of a tile is 32 bytes or more: one signature, or
// PACK short ones side by side. A warpgroup holds 64 rows of queries in its registers; a short query
// has PACK of them, each with the query in one place and zeros beside, so that every signature of a
// row meets it alone.
//
//   common = |q & x|, by wgmma          distance = |q| + |x| - 2 common
//   near only if  2 common  >=  |q| - cut + |x|
//
// Signatures are sorted by |x| in each piece of the collection, so that the smallest |x| of a tile
// stands for all: a thread needs only the largest of its products. Where that is enough, it writes
// down (row of queries, tile, which quarter of the columns), and `near_rows` looks for what is there.
//
// Given to the compiler: STORED bytes a signature, PACK, STEPS of 32 bytes a row, COLUMNS rows a tile,
// GROUPS warpgroups that multiply, BLOCKS (1 or 2) of 64 rows of queries for each, STAGES of tiles.

#define STEP_BYTES (32 * COLUMNS)
#define TILE_BYTES (STEPS * STEP_BYTES)
#define THREADS (128 * GROUPS)
#define BEHIND (STAGES / 2)  // so many tiles later everybody is usually done with one

typedef unsigned int u32;
typedef unsigned long long u64;

struct Shared {
    alignas(128) unsigned char tile[STAGES][TILE_BYTES];
    alignas(8) u64 landed[STAGES], free[STAGES];
};

__device__ __forceinline__ u32 address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void barrier_init(u64* b, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(b)), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void barrier_arrive(u64* b) {
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(address(b)) : "memory");
}
__device__ __forceinline__ void barrier_wait(u64* b, u32 parity) {
    asm volatile(
        "{\n.reg .pred done;\n"
        "again: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n}" ::"r"(address(b)), "r"(parity) : "memory");
}

__device__ __forceinline__ void fetch(const unsigned char* from, Shared& shared, u32 stage) {
    asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(
                     address(&shared.landed[stage])), "n"(TILE_BYTES) : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            address(shared.tile[stage])),
        "l"(from), "n"(TILE_BYTES), "r"(address(&shared.landed[stage])) : "memory");
}

// Says that a tile is read in blocks of 8 rows x 16 bytes, unswizzled: 128 bytes to the next eight
// rows, 16 * COLUMNS to the next 16 bytes of the same.
__device__ __forceinline__ u64 descriptor(const unsigned char* tile) {
    return (u64)(address(tile) >> 4) | (u64)COLUMNS << 16 | (u64)8 << 32;
}

// multiply(d, a, b, more): d = (more ? d : 0) + |a & b|, under way when it returns; wait<N>(d): until
// no more than N groups are, d not among them. Written in Python, since they name each register.
@PRODUCTS@

__device__ __forceinline__ void start(int (&common)[COLUMNS / 2], const u32 (&queries)[STEPS][4],
                                      const unsigned char* tile) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (u32 step = 0; step < STEPS; ++step)
        multiply(common, queries[step], descriptor(tile + step * STEP_BYTES), step);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// What may be near is rare: a function of its own keeps its registers out of the loop.
__device__ __noinline__ void write_down(u64* notes, u64 room, u64* taken, bool first, bool second, u64 at) {
    const u32 lane = threadIdx.x % 32, before = (1u << lane) - 1;
    const u32 one = __ballot_sync(~0u, first), two = __ballot_sync(~0u, second);
    u64 place = 0;
    if (lane == 0) place = atomicAdd(taken, (u64)(__popc(one) + __popc(two)));
    place = __shfl_sync(~0u, place, 0);
    const u64 mine = place + __popc(one & before), other = place + __popc(one) + __popc(two & before);
    if (first && mine < room) notes[mine] = at;
    if (second && other < room) notes[other] = at + ((u64)8 << 46);
}

struct Notes {
    u64* notes;
    u64 room;
    u64* taken;
};

// `at`: the row of queries in the high 18 bits, tile * 4 + quarter in the others.
__device__ __forceinline__ void compare(const int (&common)[COLUMNS / 2], const int (&least)[2], int fewest,
                                        const Notes& to, u64 at) {
    int top[2] = {-1, -1};
#pragma unroll
    for (u32 j = 0; j < COLUMNS / 8; ++j) {
        top[0] = max(top[0], max(common[4 * j], common[4 * j + 1]));
        top[1] = max(top[1], max(common[4 * j + 2], common[4 * j + 3]));
    }
    const bool first = 2 * top[0] >= least[0] + fewest, second = 2 * top[1] >= least[1] + fewest;
    if (__any_sync(~0u, first || second)) write_down(to.notes, to.room, to.taken, first, second, at);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) near_tiles(
    const unsigned char* tiles, const int* fewest_ones,  // the collection, and the smallest |x| of each tile
    u64 first_tile, u64 tile_count, u64 tile_step,       // what to look at: one tile in tile_step
    const unsigned char* queries, u32 query_count, const int* least_scores,  // |q| - cut
    u64* notes, u64 room, u64* taken) {
    extern __shared__ __align__(128) unsigned char raw[];
    Shared& shared = *(Shared*)raw;
    if (threadIdx.x == 0) {
        for (u32 stage = 0; stage < STAGES; ++stage) {
            barrier_init(&shared.landed[stage], 1);
            barrier_init(&shared.free[stage], 4 * GROUPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    // A thread that multiplies fetches, too: one more warp would cost all others a third of their registers.
    const u32 mine = blockIdx.x < tile_count ? (tile_count - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
    const u64 step = gridDim.x * tile_step, first = first_tile + blockIdx.x * tile_step;

    const u32 lane = threadIdx.x % 32, quarter = lane % 4;
    const u32 row0 = (blockIdx.y * GROUPS + threadIdx.x / 128) * BLOCKS * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4;
    u32 words[BLOCKS][STEPS][4];
    int least[BLOCKS][2];
#pragma unroll
    for (u32 block = 0; block < BLOCKS; ++block) {
#pragma unroll
        for (u32 half = 0; half < 2; ++half) {
            const u32 row = row0 + block * 64 + half * 8, query = row / PACK, side = row % PACK;
            const bool there = query < query_count;
            least[block][half] = there ? least_scores[query] : 1 << 24;
#pragma unroll
            for (u32 part = 0; part < 2 * STEPS; ++part) {
                const u32 byte = part * 16 + quarter * 4;
                u32 word = 0;
                if (there && byte / STORED == side)
                    word = *(const u32*)(queries + (u64)query * STORED + byte % STORED);
                words[block][part / 2][part % 2 * 2 + half] = word;
            }
        }
    }
    if (threadIdx.x == 0)
        for (u32 i = 0; i < STAGES && i < mine; ++i) fetch(tiles + (first + i * step) * TILE_BYTES, shared, i);
    const Notes to{notes, room, taken};
    u64 at = (u64)row0 << 46 | first * 4 + quarter;
    const int* ones = fewest_ones + first;
    int next = mine ? *ones : 0;
    u32 stage = 0, parity = 0, refilled = 0, refills = 0;
    for (u32 i = 0; i < mine; ++i, at += 4 * step) {
        if (i >= BEHIND) {
            if (threadIdx.x == 0 && i - BEHIND + STAGES < mine) {
                barrier_wait(&shared.free[refilled], refills);
                fetch(tiles + (first + (i - BEHIND + STAGES) * step) * TILE_BYTES, shared, refilled);
            }
            if (++refilled == STAGES) refilled = 0, refills ^= 1;
        }
        const int fewest = next;
        ones += step;
        if (i + 1 < mine) next = *ones;
        barrier_wait(&shared.landed[stage], parity);
        int even[COLUMNS / 2];
        start(even, words[0], shared.tile[stage]);
#if BLOCKS == 1
        wait<0>(even);
        __syncwarp();
        if (lane == 0) barrier_arrive(&shared.free[stage]);
        compare(even, least[0], fewest, to, at);
#else
        // The second is being multiplied while the first is compared; while the second is compared,
        // other warpgroups multiply.
        int odd[COLUMNS / 2];
        start(odd, words[1], shared.tile[stage]);
        wait<1>(even);
        compare(even, least[0], fewest, to, at);
        wait<0>(odd);
        __syncwarp();
        if (lane == 0) barrier_arrive(&shared.free[stage]);
        compare(odd, least[1], fewest, to, at + ((u64)64 << 46));
#endif
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
}
