#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "parts/votes.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

using DistanceArray = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::int64_t kFarthest = std::int64_t{1} << 61;  // twice of it can be counted to

constexpr std::int64_t kHeaviest = 1 << 20;  // so that the weights of all parts can be added

nb::tuple part_votes(const IdArray& query_parts, const IdArray& items, const IdArray& differences,
                     const IdArray& parts, const DistanceArray& distances, std::size_t count,
                     const IdArray& weights, std::int64_t tolerance, std::size_t least,
                     std::size_t k, std::int64_t vote) {
    const std::size_t pairs = items.size();
    expect(pairs < UINT32_MAX && count < UINT32_MAX, "more parts than can be counted");
    expect(query_parts.size() == pairs && differences.size() == pairs && parts.size() == pairs &&
               distances.size() == pairs,
           "near parts of different numbers");
    expect_below(query_parts, count, "parts that the query does not have");
    expect(std::all_of(differences.data(), differences.data() + pairs,
                       [](std::int64_t one) { return one >= -kFarthest && one <= kFarthest; }),
           "differences that are too large");
    expect(weights.size() == 0 || weights.size() == count, "weights of other parts");
    expect(std::all_of(weights.data(), weights.data() + weights.size(),
                       [](std::int64_t one) { return one > 0 && one <= kHeaviest; }),
           "weights that are too large");
    expect(tolerance >= 0 && tolerance < kFarthest && least > 0 && k > 0, "no votes to count");
    expect(vote > 0 && vote <= parts::kCounted, "votes that are worth nothing");
    expect(std::all_of(distances.data(), distances.data() + pairs,
                       [vote](std::int32_t one) { return one >= 0 && one < vote; }),
           "votes that are worth nothing");
    parts::Votes found = without_gil([&] {
        return parts::count_votes({{query_parts.data(), pairs},
                                   {items.data(), pairs},
                                   {differences.data(), pairs},
                                   {parts.data(), pairs},
                                   {distances.data(), pairs}},
                                  count, {weights.data(), weights.size()}, tolerance, least, k,
                                  vote);
    });
    return tuple_of(found.items, found.offsets, found.votes, found.begins, found.query_parts,
                    found.parts, found.distances);
}

}  // namespace

void bind_parts(nb::module_& module) {
    module.def("part_votes", &part_votes, "query_parts"_a.noconvert(), "items"_a.noconvert(),
               "differences"_a.noconvert(), "parts"_a.noconvert(), "distances"_a.noconvert(),
               "count"_a, "weights"_a.noconvert(), "tolerance"_a, "least"_a, "k"_a,
               "vote"_a = parts::kCounted);
}

}  // namespace lookalike::bindings
