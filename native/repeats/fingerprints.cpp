#include "repeats/fingerprints.hpp"

#include <algorithm>
#include <bit>

#include "bits/hash.hpp"

namespace lookalike::repeats {

namespace {

constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;

std::uint64_t reduced(std::uint64_t value) {
    value = (value & kPrime) + (value >> 61);
    return value >= kPrime ? value - kPrime : value;
}

std::uint64_t times(std::uint64_t one, std::uint64_t other) {
    const auto product = static_cast<unsigned __int128>(one) * other;
    return reduced(static_cast<std::uint64_t>(product & kPrime) +
                   static_cast<std::uint64_t>(product >> 61));
}

std::uint64_t plus(std::uint64_t one, std::uint64_t other) {
    return reduced(one + other);
}

std::uint64_t minus(std::uint64_t one, std::uint64_t other) {
    return one >= other ? one - other : one + kPrime - other;
}

std::uint64_t power(std::uint64_t base, std::size_t exponent) {
    std::uint64_t made = 1;
    for (; exponent != 0; exponent >>= 1) {
        if ((exponent & 1) != 0)
            made = times(made, base);
        base = times(base, base);
    }
    return made;
}

using Pair = std::array<std::uint64_t, 2>;

// Of the words of one text: where each begins, and the value of all before it.
struct Prefixes {
    std::vector<Position> begins;
    std::vector<Pair> values{{0, 0}};
};

void read_prefixes(const Texts& texts, std::size_t number, const Key& key, const Pair& places,
                   Prefixes& prefixes) {
    prefixes.begins.clear();
    prefixes.values.assign(1, {0, 0});
    WordReader reader(texts.text(number), texts.removed(number), 0);
    while (reader.next()) {
        const Pair word = siphash128(key, reader.word());
        const Pair& last = prefixes.values.back();
        Pair next;
        for (std::size_t half = 0; half < 2; ++half)  // no word is 0: longer sequences differ
            next[half] = plus(times(last[half], places[half]),
                              std::max<std::uint64_t>(1, reduced(word[half])));
        prefixes.begins.push_back(reader.begin());
        prefixes.values.push_back(next);
    }
}

}  // namespace

std::array<std::uint64_t, 2> siphash128(const Key& key, std::string_view bytes) {
    std::uint64_t v0 = key.first ^ 0x736f6d6570736575u,
                  v1 = key.second ^ 0x646f72616e646f6du ^ 0xee,
                  v2 = key.first ^ 0x6c7967656e657261u, v3 = key.second ^ 0x7465646279746573u;
    const auto rounds = [&](int count) {
        for (; count != 0; --count) {
            v0 += v1;
            v1 = std::rotl(v1, 13) ^ v0;
            v0 = std::rotl(v0, 32);
            v2 += v3;
            v3 = std::rotl(v3, 16) ^ v2;
            v0 += v3;
            v3 = std::rotl(v3, 21) ^ v0;
            v2 += v1;
            v1 = std::rotl(v1, 17) ^ v2;
            v2 = std::rotl(v2, 32);
        }
    };
    const auto add = [&](std::uint64_t word) {
        v3 ^= word;
        rounds(2);
        v0 ^= word;
    };
    const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
    const unsigned char* const whole = at + bytes.size() / 8 * 8;
    for (; at != whole; at += 8)
        add(bits::xxh64_steps::read<std::uint64_t>(at));
    std::uint64_t last = static_cast<std::uint64_t>(bytes.size()) << 56;
    for (std::size_t byte = 0; byte < bytes.size() % 8; ++byte)
        last |= static_cast<std::uint64_t>(at[byte]) << (8 * byte);
    add(last);
    v2 ^= 0xee;
    rounds(4);
    const std::uint64_t low = v0 ^ v1 ^ v2 ^ v3;
    v1 ^= 0xdd;
    rounds(4);
    return {low, v0 ^ v1 ^ v2 ^ v3};
}

Fingerprints fingerprints_of(const Texts& texts, std::span<const Position> positions,
                             const Choice& choice, const Key& key, std::size_t threads,
                             const bits::Checkpoint& checkpoint) {
    // The places of both polynomials: no text is hashed with this key, but words with the next.
    Pair places = siphash128(key, "places of polynomials");
    for (std::uint64_t& place : places)
        place = reduced(place);
    const Pair words_key = siphash128(key, "key of words");
    const Key of_words{words_key[0], words_key[1]};
    const Pair powers = {power(places[0], choice.words), power(places[1], choice.words)};

    const std::size_t count = positions.size();
    std::vector<std::size_t> begins;  // of texts
    for (std::size_t at = 0; at < count; ++at)
        if (at == 0 || texts.rank_of(positions[at]) != texts.rank_of(positions[at - 1]))
            begins.push_back(at);
    begins.push_back(count);
    Fingerprints found{std::vector<std::uint64_t>(count), std::vector<std::uint64_t>(count),
                       std::vector<std::int64_t>(count)};
    std::vector<Prefixes> workers(std::max<std::size_t>(1, threads));
    bits::share_out(
        begins.size() - 1, threads, checkpoint, [&](std::size_t worker, std::size_t part) {
            Prefixes& prefixes = workers[worker];
            const std::size_t number = texts.text_of(positions[begins[part]]);
            read_prefixes(texts, number, of_words, places, prefixes);
            std::vector<Position> units;
            if (choice.words == 0)
                units = units_of(texts.text(number), choice.unit);
            std::size_t word = 0;
            for (std::size_t at = begins[part]; at < begins[part + 1]; ++at) {
                const Position from = positions[at] - texts.begin(number);
                while (word < prefixes.begins.size() && prefixes.begins[word] < from)
                    ++word;
                std::size_t end = word + choice.words;
                Pair factors = powers;
                if (choice.words == 0) {
                    const auto next = std::upper_bound(units.begin(), units.end(), from);
                    end = next == units.end()
                              ? prefixes.begins.size()
                              : static_cast<std::size_t>(
                                    std::lower_bound(
                                        prefixes.begins.begin() + static_cast<std::ptrdiff_t>(word),
                                        prefixes.begins.end(), *next) -
                                    prefixes.begins.begin());
                    for (std::size_t half = 0; half < 2; ++half)
                        factors[half] = power(places[half], end - word);
                }
                end = std::min(end, prefixes.begins.size());
                Pair value;
                for (std::size_t half = 0; half < 2; ++half)
                    value[half] = minus(prefixes.values[end][half],
                                        times(prefixes.values[word][half], factors[half]));
                found.first[at] = value[0];
                found.second[at] = value[1];
                found.words[at] = static_cast<std::int64_t>(word);
            }
        });
    return found;
}

}  // namespace lookalike::repeats
