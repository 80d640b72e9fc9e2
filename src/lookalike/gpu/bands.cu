// Keys of the bands of MinHash signatures: the lower half of XXH64 (by Yann Collet) with the seed 0,
// as native/bits/hash.hpp has it.
//
// Given to the compiler: BAND, the bytes of a band.

typedef unsigned int u32;
typedef unsigned long long u64;

#define PRIME1 0x9E3779B185EBCA87ULL
#define PRIME2 0xC2B2AE3D27D4EB4FULL
#define PRIME3 0x165667B19E3779F9ULL
#define PRIME4 0x85EBCA77C2B2AE63ULL
#define PRIME5 0x27D4EB2F165667C5ULL

__device__ __forceinline__ u64 rotated(u64 value, int bits) {
    return value << bits | value >> (64 - bits);
}

// A band may begin at any byte.
__device__ __forceinline__ u64 word(const unsigned char* from, int bytes) {
    u64 value = 0;
#pragma unroll
    for (int byte = 0; byte < bytes; ++byte) value |= (u64)from[byte] << 8 * byte;
    return value;
}

__device__ __forceinline__ u64 mix(u64 lane, u64 input) {
    return rotated(lane + input * PRIME2, 31) * PRIME1;
}

__device__ u64 hash_of_band(const unsigned char* at) {
    u64 hash = PRIME5;
    int left = BAND;
#if BAND >= 32
    u64 lanes[4] = {PRIME1 + PRIME2, PRIME2, 0, 0 - PRIME1};
    for (; left >= 32; left -= 32, at += 32)
#pragma unroll
        for (int lane = 0; lane < 4; ++lane) lanes[lane] = mix(lanes[lane], word(at + 8 * lane, 8));
    hash = rotated(lanes[0], 1) + rotated(lanes[1], 7) + rotated(lanes[2], 12) + rotated(lanes[3], 18);
#pragma unroll
    for (int lane = 0; lane < 4; ++lane) hash = (hash ^ mix(0, lanes[lane])) * PRIME1 + PRIME4;
#endif
    hash += BAND;
    for (; left >= 8; left -= 8, at += 8)
        hash = rotated(hash ^ mix(0, word(at, 8)), 27) * PRIME1 + PRIME4;
    if (left >= 4) {
        hash = rotated(hash ^ word(at, 4) * PRIME1, 23) * PRIME2 + PRIME3;
        left -= 4;
        at += 4;
    }
    for (; left > 0; --left, ++at) hash = rotated(hash ^ *at * PRIME5, 11) * PRIME1;
    hash = (hash ^ hash >> 33) * PRIME2;
    hash = (hash ^ hash >> 29) * PRIME3;
    return hash ^ hash >> 32;
}

// Writes the key of each band of each row to keys[band * count + row].
extern "C" __global__ void band_keys(const unsigned char* rows, u64 count, u64 row_bytes, u64 bands, u32* keys) {
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < count * bands; at += step) {
        const u64 band = at / count, row = at % count;
        keys[at] = (u32)hash_of_band(rows + row * row_bytes + band * BAND);
    }
}
