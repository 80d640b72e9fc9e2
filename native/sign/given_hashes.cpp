#include "sign/given_hashes.hpp"

#include <atomic>

#include "sign/per_document.hpp"

namespace lookalike::sign {

namespace {

constexpr std::uint64_t kNone = UINT64_MAX;

// The least value of a function; false if it does not know a feature.
bool least_value(const GivenHash& hash, const std::vector<std::uint64_t>& features,
                 std::uint32_t& least) {
    least = UINT32_MAX;
    if (hash.modulus == 0) {
        for (const std::uint64_t feature : features) {
            const std::uint32_t* const value = hash.table.find(feature);
            if (value == nullptr)
                return false;
            least = std::min(least, *value);
        }
        return true;
    }
    // Below the modulus before they are multiplied, so that nothing overflows.
    const std::uint64_t modulus = hash.modulus;
    const std::uint64_t factor = hash.factor % modulus, term = hash.term % modulus;
    for (const std::uint64_t feature : features) {
        const std::uint64_t value = (factor * (feature % modulus) + term) % modulus;
        least = std::min(least, static_cast<std::uint32_t>(value));
    }
    return true;
}

}  // namespace

UnknownFeature given_minima(const Source& source, const std::vector<GivenHash>& hashes, Work work,
                            std::uint32_t* minima) {
    std::atomic<std::uint64_t> unknown{kNone};
    per_document(source.size(), work, Reader{}, [&](Reader& reader, std::size_t document) {
        const Bag& bag = reader.read(source, document);
        for (std::size_t index = 0; index < hashes.size(); ++index) {
            const std::size_t place = document * hashes.size() + index;
            if (least_value(hashes[index], bag.features, minima[place]))
                continue;
            // The least place wins, whichever thread meets it.
            std::uint64_t known = unknown.load();
            while (place < known && !unknown.compare_exchange_weak(known, place)) {
            }
        }
    });
    const std::uint64_t first = unknown.load();
    if (first == kNone)
        return {-1, -1};
    return {static_cast<std::int64_t>(first / hashes.size()),
            static_cast<std::int64_t>(first % hashes.size())};
}

}  // namespace lookalike::sign
