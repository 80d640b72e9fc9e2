// How a collection lies on the card.
//
// Signatures are taken in pieces of PIECE, sorted by their number of ones in each; the sorted ones
// fill tiles of COLUMNS rows of PACK signatures. A tile has the first 16 bytes of all its rows, then
// the next 16 of all, and so on: what the tensor instructions read, and what neighboring threads
// read together. The last tile is filled up with zeros.
//
// Given to the compiler: BYTES a signature as it comes, STORED bytes of it here (zeros at the end),
// PACK, STEPS of 32 bytes a row, COLUMNS, PIECE.

#define TILE_BYTES (32 * STEPS * COLUMNS)

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// What to sort by: the piece, then the number of ones.
extern "C" __global__ void sort_keys(const unsigned char* signatures, u64 count, u32* keys) {
    const u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 row = (u64)blockIdx.x * blockDim.x + threadIdx.x; row < count; row += stride) {
        const unsigned char* at = signatures + row * BYTES;
        int ones = 0;
        u32 byte = 0;
#if BYTES % 4 == 0
        for (; byte < BYTES; byte += 4) ones += __popc(*(const u32*)(at + byte));
#endif
        for (; byte < BYTES; ++byte) ones += __popc(at[byte]);
        keys[row] = (u32)(row / PIECE) << 13 | ones;
    }
}

// Puts signature order[slot] into its slot; `tiles` are zero before. Also its place in its piece, and
// the fewest ones of each tile, whose first signature has them.
extern "C" __global__ void arrange(const unsigned char* signatures, u64 count, const u64* order, const u32* keys,
                                   unsigned char* tiles, u16* places, int* fewest_ones) {
    constexpr u32 WORDS = (BYTES + 3) / 4;
    const u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < count * WORDS; at += stride) {
        const u64 slot = at / WORDS, row = order[slot];
        const u32 word = at % WORDS, byte = slot % PACK * STORED + word * 4;
        const unsigned char* from = signatures + row * BYTES + word * 4;
        u32 value = 0;
#if BYTES % 4 == 0
        value = *(const u32*)from;
#else
        for (u32 i = 0; i < 4 && word * 4 + i < BYTES; ++i) value |= (u32)from[i] << 8 * i;
#endif
        const u64 column = slot / PACK % COLUMNS, tile = slot / PACK / COLUMNS;
        *(u32*)(tiles + tile * TILE_BYTES + byte / 16 * (16 * COLUMNS) + column * 16 + byte % 16) = value;
        if (word > 0) continue;
        places[slot] = (u16)(row % PIECE);
        if (slot % (PACK * COLUMNS) == 0) fewest_ones[tile] = keys[row] & 0x1fff;
    }
}

// Copies signatures out of their slots, as they came but for zeros at the end: STORED bytes each.
extern "C" __global__ void take(const unsigned char* tiles, const u64* slots, u64 count, unsigned char* signatures) {
    const u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < count * (STORED / 4); at += stride) {
        const u64 slot = slots[at / (STORED / 4)];
        const u32 word = at % (STORED / 4), byte = slot % PACK * STORED + word * 4;
        const u64 column = slot / PACK % COLUMNS, tile = slot / PACK / COLUMNS;
        *(u32*)(signatures + at * 4) =
            *(const u32*)(tiles + tile * TILE_BYTES + byte / 16 * (16 * COLUMNS) + column * 16 + byte % 16);
    }
}
