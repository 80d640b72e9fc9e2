#include "sign/loops.hpp"
#include "sign/per_document.hpp"

namespace lookalike::sign {

namespace {

// The finaliser of MurmurHash3 for 32 bits: a permutation that mixes all bits.
std::uint32_t fmix32(std::uint32_t value) {
    value = (value ^ (value >> 16)) * 0x85ebca6bu;
    value = (value ^ (value >> 13)) * 0xc2b2ae35u;
    return value ^ (value >> 16);
}

// Reads the b bits from position `index * b` of a packed row, lowest first.
std::uint32_t packed_value(const std::uint8_t* row, std::size_t index, std::size_t b) {
    std::uint32_t value = 0;
    for (std::size_t bit = 0; bit < b; ++bit) {
        const std::size_t at = index * b + bit;
        value |= static_cast<std::uint32_t>(row[at / 8] >> (at % 8) & 1) << bit;
    }
    return value;
}

// Calls use(document, minima) for every document.
template <class Use>
void each_minima(const Source& source, const std::vector<std::uint32_t>& factors,
                 const std::vector<std::uint32_t>& terms, Work work, Use use) {
    struct State {
        Reader reader;
        std::vector<std::uint32_t> values, minimum;
    };
    const std::size_t permutations = factors.size();
    const std::size_t padded =
        (permutations + kPermutationGroup - 1) / kPermutationGroup * kPermutationGroup;
    std::vector<std::uint32_t> padded_factors(factors), padded_terms(terms);
    padded_factors.resize(padded, 1);
    padded_terms.resize(padded, 0);
    const Loops& loop = loops();
    per_document(source.size(), work, State{}, [&](State& state, std::size_t document) {
        const Bag& bag = state.reader.read(source, document);
        state.values.resize(bag.features.size());
        for (std::size_t index = 0; index < state.values.size(); ++index)
            state.values[index] = static_cast<std::uint32_t>(bag.features[index] >> 32);
        state.minimum.assign(padded, UINT32_MAX);
        loop.permuted_minima(state.values.data(), state.values.size(), padded_factors.data(),
                             padded_terms.data(), padded, state.minimum.data());
        use(document, state.minimum.data());
    });
}

// Mixes values, or takes them as they are.
void pack_row(const std::uint32_t* minima, std::size_t permutations, std::size_t b, bool mix,
              std::uint8_t* row) {
    // Without mixing, the low bits of factor * x + term would be those of x, up to a constant: the
    // same elements would collide by chance in all permutations or in none.
    const auto mixed = [minima, mix](std::size_t index) {
        if (!mix)
            return minima[index];
        return fmix32(minima[index] + 0x9e3779b9u * static_cast<std::uint32_t>(index + 1));
    };
    if (b == 16) {  // what `lookalike dedup` has; a loop that compilers vectorize
        for (std::size_t index = 0; index < permutations; ++index) {
            const std::uint32_t value = mixed(index);
            row[2 * index] = static_cast<std::uint8_t>(value);
            row[2 * index + 1] = static_cast<std::uint8_t>(value >> 8);
        }
        return;
    }
    std::fill(row, row + permutations * b / 8, std::uint8_t{0});
    for (std::size_t index = 0; index < permutations; ++index) {
        const std::uint32_t value = mixed(index);
        for (std::size_t bit = 0; bit < b; ++bit) {
            const std::size_t at = index * b + bit;
            row[at / 8] |= static_cast<std::uint8_t>((value >> bit & 1) << (at % 8));
        }
    }
}

}  // namespace

void minhash(const Source& source, const std::vector<std::uint32_t>& factors,
             const std::vector<std::uint32_t>& terms, Work work, std::uint32_t* minima) {
    each_minima(source, factors, terms, work,
                [&](std::size_t document, const std::uint32_t* minimum) {
                    std::copy_n(minimum, factors.size(), minima + document * factors.size());
                });
}

void packed_minhash(const Source& source, const std::vector<std::uint32_t>& factors,
                    const std::vector<std::uint32_t>& terms, std::size_t b, Work work,
                    std::uint8_t* signatures) {
    const std::size_t bytes = factors.size() * b / 8;
    each_minima(source, factors, terms, work,
                [&](std::size_t document, const std::uint32_t* minimum) {
                    pack_row(minimum, factors.size(), b, true, signatures + document * bytes);
                });
}

void pack_minima(const std::uint32_t* minima, std::size_t documents, std::size_t permutations,
                 std::size_t b, bool mix, Work work, std::uint8_t* signatures) {
    const std::size_t bytes = permutations * b / 8;
    struct NoState {};
    per_document(documents, work, NoState{}, [&](NoState&, std::size_t document) {
        pack_row(minima + document * permutations, permutations, b, mix,
                 signatures + document * bytes);
    });
}

void equal_values(const std::uint8_t* left, const std::uint8_t* right, std::size_t rows,
                  std::size_t permutations, std::size_t b, std::int32_t* equal) {
    const std::size_t bytes = permutations * b / 8;
    for (std::size_t row = 0; row < rows; ++row) {
        std::int32_t count = 0;
        for (std::size_t index = 0; index < permutations; ++index)
            count += packed_value(left + row * bytes, index, b) ==
                             packed_value(right + row * bytes, index, b)
                         ? 1
                         : 0;
        equal[row] = count;
    }
}

}  // namespace lookalike::sign
