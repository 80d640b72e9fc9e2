// Compiled once per instruction set: see bits/instruction_sets.hpp.

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "bits/bit_field.hpp"
#include "bits/prefetch.hpp"
#include "slices/scoring/loops.hpp"

namespace lookalike::search {
namespace {

constexpr std::size_t kBlock = 64;

// Bit i is set where score i of a block is `least` or more.
#if defined(__AVX512BW__)
std::uint64_t reached(const std::uint8_t* scores, std::uint8_t least) {
    return _mm512_cmpge_epu8_mask(_mm512_loadu_si512(scores),
                                  _mm512_set1_epi8(static_cast<char>(least)));
}
#elif defined(__AVX2__)
std::uint64_t reached(const std::uint8_t* scores, std::uint8_t least) {
    const __m256i limit = _mm256_set1_epi8(static_cast<char>(least));
    const auto half = [&](const std::uint8_t* from) {
        const __m256i some = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
        const __m256i equal = _mm256_cmpeq_epi8(_mm256_max_epu8(some, limit), some);
        return static_cast<std::uint32_t>(_mm256_movemask_epi8(equal));
    };
    return std::uint64_t{half(scores + 32)} << 32 | half(scores);
}
#else
std::uint64_t reached(const std::uint8_t* scores, std::uint8_t least) {
    std::uint8_t largest = 0;
    for (std::size_t at = 0; at < kBlock; ++at)
        largest = scores[at] > largest ? scores[at] : largest;
    if (largest < least) [[likely]]
        return 0;
    std::uint64_t mask = 0;
    for (std::size_t at = 0; at < kBlock; ++at)
        mask |= std::uint64_t{scores[at] >= least} << at;
    return mask;
}
#endif

std::size_t collect(const std::uint8_t* scores, std::size_t count, std::uint8_t least,
                    std::uint64_t* places, const std::uint64_t* marks) {
    std::size_t found = 0, begin = 0;
    for (; begin + kBlock <= count; begin += kBlock) {
        std::uint64_t mask = reached(scores + begin, least);
        if (marks != nullptr)
            mask &= marks[begin / kBlock];
        for (; mask != 0; mask &= mask - 1)
            places[found++] = begin + static_cast<std::size_t>(__builtin_ctzll(mask));
    }
    for (; begin < count; ++begin)
        if (scores[begin] >= least &&
            (marks == nullptr || (marks[begin / kBlock] >> begin % kBlock & 1) != 0))
            places[found++] = begin;
    return found;
}

std::size_t count_from(const std::uint8_t* scores, std::size_t count, std::uint8_t least) {
    std::size_t found = 0, begin = 0;
    for (; begin + kBlock <= count; begin += kBlock)
        found += static_cast<std::size_t>(__builtin_popcountll(reached(scores + begin, least)));
    for (; begin < count; ++begin)
        found += scores[begin] >= least ? 1 : 0;
    return found;
}

void mark_from(const std::uint8_t* scores, std::size_t count, std::uint8_t least,
               std::uint64_t* marks) {
    std::size_t begin = 0;
    for (; begin + kBlock <= count; begin += kBlock)
        marks[begin / kBlock] = reached(scores + begin, least);
    if (begin == count)
        return;
    std::uint64_t last = 0;
    for (std::size_t at = begin; at < count; ++at)
        last |= std::uint64_t{scores[at] >= least} << (at - begin);
    marks[begin / kBlock] = last;
}

// The same for sketches: a word is near if it differs in `cutoff` bits or fewer.
constexpr std::size_t kSketches = 32;

#if defined(__AVX512BW__)
std::uint32_t near_of_block(const std::uint16_t* sketches, std::uint16_t query,
                            std::uint16_t cutoff) {
    const __m512i ones =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    const __m512i low = _mm512_set1_epi8(15);
    const __m512i flips = _mm512_xor_si512(_mm512_loadu_si512(sketches),
                                           _mm512_set1_epi16(static_cast<short>(query)));
    const __m512i of_bytes = _mm512_add_epi8(
        _mm512_shuffle_epi8(ones, _mm512_and_si512(flips, low)),
        _mm512_shuffle_epi8(ones, _mm512_and_si512(_mm512_srli_epi16(flips, 4), low)));
    const __m512i of_words = _mm512_add_epi16(_mm512_srli_epi16(of_bytes, 8),
                                              _mm512_and_si512(of_bytes, _mm512_set1_epi16(255)));
    return _mm512_cmple_epu16_mask(of_words, _mm512_set1_epi16(static_cast<short>(cutoff)));
}
#elif defined(__AVX2__)
std::uint32_t near_of_block(const std::uint16_t* sketches, std::uint16_t query,
                            std::uint16_t cutoff) {
    const __m256i ones =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    const __m256i low = _mm256_set1_epi8(15);
    const auto farther = [&](const std::uint16_t* from) {
        const __m256i flips =
            _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)),
                             _mm256_set1_epi16(static_cast<short>(query)));
        const __m256i of_bytes = _mm256_add_epi8(
            _mm256_shuffle_epi8(ones, _mm256_and_si256(flips, low)),
            _mm256_shuffle_epi8(ones, _mm256_and_si256(_mm256_srli_epi16(flips, 4), low)));
        const __m256i of_words = _mm256_add_epi16(
            _mm256_srli_epi16(of_bytes, 8), _mm256_and_si256(of_bytes, _mm256_set1_epi16(255)));
        return _mm256_cmpgt_epi16(of_words, _mm256_set1_epi16(static_cast<short>(cutoff)));
    };
    // Packing takes turns between 128-bit lanes; put them back in order.
    const __m256i packed = _mm256_permute4x64_epi64(
        _mm256_packs_epi16(farther(sketches), farther(sketches + 16)), 0xd8);
    return ~static_cast<std::uint32_t>(_mm256_movemask_epi8(packed));
}
#else
std::uint32_t near_of_block(const std::uint16_t* sketches, std::uint16_t query,
                            std::uint16_t cutoff) {
    std::uint32_t mask = 0;
    for (std::size_t at = 0; at < kSketches; ++at)
        mask |= std::uint32_t{__builtin_popcount(sketches[at] ^ query) <= cutoff} << at;
    return mask;
}
#endif

std::size_t near_sketches(const std::uint16_t* sketches, std::size_t count, std::uint16_t query,
                          std::uint16_t cutoff, std::uint32_t* places) {
    std::size_t found = 0, begin = 0;
    for (; begin + kSketches <= count; begin += kSketches)
        for (std::uint32_t mask = near_of_block(sketches + begin, query, cutoff); mask != 0;
             mask &= mask - 1)
            places[found++] =
                static_cast<std::uint32_t>(begin) + static_cast<std::uint32_t>(__builtin_ctz(mask));
    if (begin == count)
        return found;
    // The rest, with words behind it that are not looked at.
    std::uint16_t last[kSketches] = {};
    __builtin_memcpy(last, sketches + begin, (count - begin) * sizeof *last);
    for (std::uint32_t mask = near_of_block(last, query, cutoff) & ((1u << (count - begin)) - 1);
         mask != 0; mask &= mask - 1)
        places[found++] =
            static_cast<std::uint32_t>(begin) + static_cast<std::uint32_t>(__builtin_ctz(mask));
    return found;
}

#if defined(__AVX512VPOPCNTDQ__)
// Bit j is set where word j is near; there are `left` of them, and no more are looked at.
constexpr std::size_t kWords = 8;
std::uint32_t near_of_words(const std::uint64_t* words, std::size_t left, std::uint64_t one,
                            std::uint32_t cutoff) {
    const __mmask8 there =
        left >= kWords ? __mmask8{0xff} : static_cast<__mmask8>((1u << left) - 1);
    const __m512i flips = _mm512_xor_si512(_mm512_maskz_loadu_epi64(there, words),
                                           _mm512_set1_epi64(static_cast<long long>(one)));
    return _mm512_mask_cmple_epu64_mask(there, _mm512_popcnt_epi64(flips),
                                        _mm512_set1_epi64(cutoff));
}
#elif defined(__AVX2__)
constexpr std::size_t kWords = 4;
std::uint32_t near_of_words(const std::uint64_t* words, std::size_t left, std::uint64_t one,
                            std::uint32_t cutoff) {
    const __m256i ones =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    const __m256i low = _mm256_set1_epi8(15);
    const __m256i there = _mm256_cmpgt_epi64(_mm256_set1_epi64x(static_cast<long long>(left)),
                                             _mm256_setr_epi64x(0, 1, 2, 3));
    const __m256i flips =
        _mm256_xor_si256(_mm256_maskload_epi64(reinterpret_cast<const long long*>(words), there),
                         _mm256_set1_epi64x(static_cast<long long>(one)));
    const __m256i of_bytes = _mm256_add_epi8(
        _mm256_shuffle_epi8(ones, _mm256_and_si256(flips, low)),
        _mm256_shuffle_epi8(ones, _mm256_and_si256(_mm256_srli_epi16(flips, 4), low)));
    const __m256i of_words = _mm256_sad_epu8(of_bytes, _mm256_setzero_si256());
    const __m256i near =
        _mm256_andnot_si256(_mm256_cmpgt_epi64(of_words, _mm256_set1_epi64x(cutoff)), there);
    return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(near)));
}
#else
constexpr std::size_t kWords = 1;
std::uint32_t near_of_words(const std::uint64_t* words, std::size_t, std::uint64_t one,
                            std::uint32_t cutoff) {
    return static_cast<std::uint32_t>(__builtin_popcountll(*words ^ one)) <= cutoff ? 1 : 0;
}
#endif

std::size_t near_words(const std::uint64_t* words, std::size_t count, std::uint32_t cutoff,
                       std::size_t& first, WordPair* pairs, std::size_t room) {
    std::size_t found = 0;
    for (; first < count && found + count <= room; ++first)
        for (std::size_t at = first + 1; at < count; at += kWords)
            for (std::uint32_t near = near_of_words(words + at, count - at, words[first], cutoff);
                 near != 0; near &= near - 1) {
                const std::size_t other = at + static_cast<std::size_t>(__builtin_ctz(near));
                pairs[found++] = {
                    static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(other),
                    static_cast<std::uint32_t>(__builtin_popcountll(words[first] ^ words[other]))};
            }
    return found;
}

// One key at a time, without branches: which way they would go cannot be foreseen.
std::size_t set_apart_singly(std::uint32_t* keys, std::size_t from, std::size_t count,
                             std::size_t kept, std::size_t shift, const std::uint32_t* bits,
                             std::uint32_t* marked) {
    std::size_t apart = 0;
    for (std::size_t at = from; at < count; ++at) {
        const std::uint32_t key = keys[at], hash = key >> shift & 0xffff;
        const std::uint32_t is_marked = bits[hash / 32] >> hash % 32 & 1;
        marked[apart] = key;
        apart += is_marked;
        keys[kept] = key;
        kept += is_marked ^ 1;
    }
    return apart;
}

std::size_t copy_near_singly(const std::uint32_t* keys, std::size_t count, std::uint32_t limit,
                             std::uint32_t more, std::uint32_t* to) {
    std::size_t copied = 0;
    for (std::size_t at = 0; at < count; ++at)
        if (keys[at] - (limit + 1) < more) [[unlikely]]
            to[copied++] = keys[at];
    return copied;
}

std::size_t keep_singly(std::uint32_t* keys, std::size_t from, std::size_t count, std::size_t kept,
                        std::uint32_t limit) {
    for (std::size_t at = from; at < count; ++at) {
        keys[kept] = keys[at];
        kept += keys[at] <= limit ? 1 : 0;
    }
    return kept;
}

#if defined(__AVX512BW__)
std::size_t set_apart(std::uint32_t* keys, std::size_t count, std::size_t shift,
                      const std::uint32_t* bits, std::uint32_t* marked) {
    std::size_t at = 0, kept = 0, apart = 0;
    for (; at + 16 <= count; at += 16) {
        const __m512i some = _mm512_loadu_si512(keys + at);
        const __m512i hash = _mm512_and_si512(
            _mm512_srl_epi32(some, _mm_cvtsi64_si128(static_cast<long long>(shift))),
            _mm512_set1_epi32(0xffff));
        const __m512i words = _mm512_i32gather_epi32(_mm512_srli_epi32(hash, 5), bits, 4);
        const __m512i bit =
            _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_and_si512(hash, _mm512_set1_epi32(31)));
        const __mmask16 mask = _mm512_test_epi32_mask(words, bit);
        // Stored whole, which is quicker than storing parts; what is too much is overwritten.
        _mm512_storeu_si512(keys + kept,
                            _mm512_maskz_compress_epi32(static_cast<__mmask16>(~mask), some));
        kept += 16 - static_cast<std::size_t>(__builtin_popcount(mask));
        if (mask == 0) [[likely]]
            continue;
        _mm512_mask_compressstoreu_epi32(marked + apart, mask, some);
        apart += static_cast<std::size_t>(__builtin_popcount(mask));
    }
    return apart + set_apart_singly(keys, at, count, kept, shift, bits, marked + apart);
}

std::size_t copy_near(const std::uint32_t* keys, std::size_t count, std::uint32_t limit,
                      std::uint32_t more, std::uint32_t* to) {
    const __m512i first = _mm512_set1_epi32(static_cast<int>(limit + 1));
    const __m512i size = _mm512_set1_epi32(static_cast<int>(more));
    std::size_t at = 0, copied = 0;
    for (; at + 16 <= count; at += 16) {
        const __m512i some = _mm512_loadu_si512(keys + at);
        const __mmask16 mask = _mm512_cmplt_epu32_mask(_mm512_sub_epi32(some, first), size);
        if (mask == 0) [[likely]]
            continue;
        _mm512_storeu_si512(to + copied, _mm512_maskz_compress_epi32(mask, some));
        copied += static_cast<std::size_t>(__builtin_popcount(mask));
    }
    return copied + copy_near_singly(keys + at, count - at, limit, more, to + copied);
}

std::size_t keep_up_to(std::uint32_t* keys, std::size_t count, std::uint32_t limit) {
    const __m512i most = _mm512_set1_epi32(static_cast<int>(limit));
    std::size_t at = 0, kept = 0;
    for (; at + 16 <= count; at += 16) {
        const __m512i some = _mm512_loadu_si512(keys + at);
        const __mmask16 mask = _mm512_cmple_epu32_mask(some, most);
        _mm512_storeu_si512(keys + kept, _mm512_maskz_compress_epi32(mask, some));
        kept += static_cast<std::size_t>(__builtin_popcount(mask));
    }
    return keep_singly(keys, at, count, kept, limit);
}
#else
std::size_t copy_near(const std::uint32_t* keys, std::size_t count, std::uint32_t limit,
                      std::uint32_t more, std::uint32_t* to) {
    return copy_near_singly(keys, count, limit, more, to);
}

std::size_t set_apart(std::uint32_t* keys, std::size_t count, std::size_t shift,
                      const std::uint32_t* bits, std::uint32_t* marked) {
    return set_apart_singly(keys, 0, count, 0, shift, bits, marked);
}

std::size_t keep_up_to(std::uint32_t* keys, std::size_t count, std::uint32_t limit) {
    return keep_singly(keys, 0, count, 0, limit);
}
#endif

std::size_t count_up_to(const std::uint32_t* keys, std::size_t count, std::uint32_t limit) {
    std::uint32_t found = 0;
    for (std::size_t at = 0; at < count; ++at)
        found += keys[at] <= limit ? 1 : 0;
    return found;
}

// The bits that agree in slices that count, of one signature.
std::uint32_t compare_one(const std::uint8_t* signature, const ComparedSlices& query) {
    std::uint32_t score = 0;
    for (std::size_t at = 0; at < query.count; ++at) {
        const auto there =
            static_cast<std::uint32_t>(bits_from(signature, query.bytes, query.starts[at]));
        const auto ones = static_cast<std::uint32_t>(
            __builtin_popcount((there ^ query.values[at]) & query.masks[at]));
        score += ones > query.above && ones <= query.up_to ? query.widths[at] - ones : 0;
    }
    return score;
}

#if defined(__AVX512VPOPCNTDQ__)
constexpr std::size_t kWidestGathered = 25;  // a word of 32 bits has it, whatever bit it begins at
constexpr std::size_t kHeldBytes = 128;      // of a signature, in two registers

// Adds the bits that agree in 16 slices, where those that differ are in range.
__m512i added(__m512i sum, __m512i flips, __m512i widths, __m512i first, __m512i range) {
    const __m512i ones = _mm512_popcnt_epi32(flips);
    const __mmask16 counts = _mm512_cmplt_epu32_mask(_mm512_sub_epi32(ones, first), range);
    return _mm512_mask_add_epi32(sum, counts, sum, _mm512_sub_epi32(widths, ones));
}

// The same for 16 slices at a time, none of which is wider than kWidestGathered.
std::uint32_t compare_gathered(const std::uint8_t* signature, const ComparedSlices& query) {
    const __m512i last = _mm512_set1_epi32(static_cast<int>(query.bytes) - 4);
    const __m512i first = _mm512_set1_epi32(static_cast<int>(query.above + 1));
    const __m512i range = _mm512_set1_epi32(static_cast<int>(query.up_to - query.above));
    __m512i sum = _mm512_setzero_si512();
    for (std::size_t at = 0; at < query.count; at += 16) {
        const __m512i starts = _mm512_loadu_si512(query.starts + at);
        const __m512i bytes = _mm512_min_epi32(_mm512_srli_epi32(starts, 3), last);
        const __m512i there =
            _mm512_srlv_epi32(_mm512_i32gather_epi32(bytes, signature, 1),
                              _mm512_sub_epi32(starts, _mm512_slli_epi32(bytes, 3)));
        const __m512i flips =
            _mm512_and_si512(_mm512_xor_si512(there, _mm512_loadu_si512(query.values + at)),
                             _mm512_loadu_si512(query.masks + at));
        sum = added(sum, flips, _mm512_loadu_si512(query.widths + at), first, range);
    }
    return static_cast<std::uint32_t>(_mm512_reduce_add_epi32(sum));
}

// A signature that two registers hold.
struct HeldSignature {
    __m512i low, high;

    HeldSignature(const std::uint8_t* signature, std::size_t bytes)
        : low(_mm512_maskz_loadu_epi8(there(bytes), signature)),
          high(bytes <= 64 ? _mm512_setzero_si512()
                           : _mm512_maskz_loadu_epi8(there(bytes - 64), signature + 64)) {}

  private:
    static __mmask64 there(std::size_t bytes) {
        return bytes >= 64 ? ~__mmask64{0} : (__mmask64{1} << bytes) - 1;
    }
};

// The same for such signatures, 16 slices at a time: the words in which a slice begins and ends are
// put beside each other.
class PermutedSlices {
  public:
    static bool fits(const ComparedSlices& query) {
        return query.widest <= 17 && query.bytes <= kHeldBytes;
    }

    explicit PermutedSlices(const ComparedSlices& query) {
        // A slice that ends in the last word has no bits in the next, whichever that is.
        for (std::size_t at = 0; at < query.count; ++at) {
            const std::uint32_t word = query.starts[at] / 16;
            words_[at] = word | (word + 1) << 16;
            shifts_[at] = query.starts[at] % 16;
        }
    }

    std::uint32_t operator()(const std::uint8_t* signature, const ComparedSlices& query) const {
        const HeldSignature held(signature, query.bytes);
        const __m512i first = _mm512_set1_epi32(static_cast<int>(query.above + 1));
        const __m512i range = _mm512_set1_epi32(static_cast<int>(query.up_to - query.above));
        __m512i sum = _mm512_setzero_si512();
        for (std::size_t at = 0; at < query.count; at += 16) {
            const __m512i pairs = _mm512_srlv_epi32(
                _mm512_permutex2var_epi16(held.low, _mm512_load_si512(words_ + at), held.high),
                _mm512_load_si512(shifts_ + at));
            const __m512i flips =
                _mm512_and_si512(_mm512_xor_si512(pairs, _mm512_loadu_si512(query.values + at)),
                                 _mm512_loadu_si512(query.masks + at));
            sum = added(sum, flips, _mm512_loadu_si512(query.widths + at), first, range);
        }
        return static_cast<std::uint32_t>(_mm512_reduce_add_epi32(sum));
    }

  private:
    alignas(64) std::uint32_t words_[8 * kHeldBytes] = {};
    alignas(64) std::uint32_t shifts_[8 * kHeldBytes] = {};
};

// The same for slices of at most 16 bits, 32 at a time and `blocks` times. `aligned`: each is a
// word.
template <std::size_t blocks, bool aligned = false>
class PermutedWords {
    static_assert(!aligned || blocks == 2, "a held signature has two times 32 words");

  public:
    static bool fits(const ComparedSlices& query) {
        if (query.widest > 16 || query.count > 32 * blocks || query.bytes > kHeldBytes)
            return false;
        for (std::size_t at = 0; aligned && at < query.count; ++at)
            if (query.starts[at] != 16 * at)
                return false;
        return true;
    }

    explicit PermutedWords(const ComparedSlices& query)
        : first_(_mm512_set1_epi16(static_cast<short>(query.above + 1))),
          range_(_mm512_set1_epi16(static_cast<short>(query.up_to - query.above))) {
        alignas(64) std::uint16_t parts[6][32 * blocks] = {};
        for (std::size_t at = 0; at < query.count; ++at) {
            const std::uint32_t shift = query.starts[at] % 16;
            parts[0][at] = static_cast<std::uint16_t>(query.starts[at] / 16);
            parts[1][at] = static_cast<std::uint16_t>(query.starts[at] / 16 + 1);
            parts[2][at] = static_cast<std::uint16_t>(shift);
            parts[3][at] = static_cast<std::uint16_t>(query.values[at]);
            parts[4][at] = static_cast<std::uint16_t>(query.masks[at]);
            parts[5][at] = static_cast<std::uint16_t>(query.widths[at]);
        }
        for (std::size_t block = 0; block < blocks; ++block) {
            const auto part = [&](std::size_t which) {
                return _mm512_load_si512(parts[which] + 32 * block);
            };
            // A shift of 16 makes 0: there is nothing of a slice in the next word.
            blocks_[block] = {
                part(0), part(1), part(2), _mm512_sub_epi16(_mm512_set1_epi16(16), part(2)),
                part(3), part(4), part(5)};
        }
    }

    std::uint32_t operator()(const std::uint8_t* signature, const ComparedSlices& query) const {
        const HeldSignature held(signature, query.bytes);
        __m512i sums = _mm512_setzero_si512();
        for (std::size_t block = 0; block < blocks; ++block)
            sums = _mm512_add_epi16(
                sums, agreeing(held, block == 0 ? held.low : held.high, blocks_[block]));
        // Each is at most 64, so that its lower byte is all of it.
        return static_cast<std::uint32_t>(
            _mm512_reduce_add_epi64(_mm512_sad_epu8(sums, _mm512_setzero_si512())));
    }

  private:
    struct Block {
        __m512i words, next, right, left, values, masks, widths;
    };

    __m512i agreeing(const HeldSignature& held, __m512i there, const Block& block) const {
        if constexpr (!aligned)
            there = _mm512_or_si512(
                _mm512_srlv_epi16(_mm512_permutex2var_epi16(held.low, block.words, held.high),
                                  block.right),
                _mm512_sllv_epi16(_mm512_permutex2var_epi16(held.low, block.next, held.high),
                                  block.left));
        const __m512i flips = _mm512_and_si512(_mm512_xor_si512(there, block.values), block.masks);
        const __m512i ones = _mm512_popcnt_epi16(flips);
        const __mmask32 counts = _mm512_cmplt_epu16_mask(_mm512_sub_epi16(ones, first_), range_);
        return _mm512_maskz_sub_epi16(counts, block.widths, ones);
    }

    __m512i first_, range_;
    Block blocks_[blocks];
};
#endif

std::size_t compared_at_once([[maybe_unused]] const ComparedSlices& query) {
#if defined(__AVX512VPOPCNTDQ__)
    if (PermutedWords<4>::fits(query))
        return 32;
    if (PermutedSlices::fits(query))
        return 16;
#endif
    return 1;
}

void compare_slices(const std::uint8_t* signatures, const ComparedSlices& query,
                    const std::uint64_t* rows, std::size_t count, std::uint32_t* scores) {
    constexpr std::size_t kAhead = 32;
    const auto each = [&](auto compare) __attribute__((always_inline)) {
        for (std::size_t at = 0; at < count; ++at) {
            if (at + kAhead < count)
                bits::prefetch_all(signatures + rows[at + kAhead] * query.bytes, query.bytes);
            scores[at] = compare(signatures + rows[at] * query.bytes, query);
        }
    };
#if defined(__AVX512VPOPCNTDQ__)
    if (PermutedWords<2, true>::fits(query))
        return each(PermutedWords<2, true>(query));
    if (PermutedWords<2>::fits(query))
        return each(PermutedWords<2>(query));
    if (PermutedWords<3>::fits(query))
        return each(PermutedWords<3>(query));
    if (PermutedWords<4>::fits(query))
        return each(PermutedWords<4>(query));
    if (PermutedSlices::fits(query))
        return each(PermutedSlices(query));
    if (query.widest <= kWidestGathered && query.bytes >= 4)
        return each(compare_gathered);
#endif
    each(compare_one);
}

constexpr ScoreLoops kLoops{collect,    count_from,     mark_from,       near_sketches,
                            near_words, set_apart,      count_up_to,     copy_near,
                            keep_up_to, compare_slices, compared_at_once};

}  // namespace

constinit const ScoreLoops ScoreLoops::LOOKALIKE_SET = kLoops;

}  // namespace lookalike::search
