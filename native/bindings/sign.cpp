#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "bindings/module.hpp"
#include "bindings/source.hpp"
#include "bindings/text.hpp"
#include "sign/combined.hpp"
#include "sign/signers.hpp"

namespace lookalike::bindings {

using namespace nb::literals;

namespace {

using sign::RepeatedFeatures;
using sign::Vocabulary;
using sign::WeightKind;
using Offsets = IdArray;
using FeatureArray = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using WeightArray = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using VectorArray = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using NormalArray = nb::ndarray<const std::int16_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MinimaArray = nb::ndarray<const std::uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Rows>
void expect_documents(const BoundSource& source, const Rows& rows) {
    expect(rows.shape(0) == source.source->size(), "rows of another number than documents");
}

using Sums = OutputArray<float, 2>;

void expect_sums(const Sums& sums, const OutputArray<std::uint8_t, 2>& signatures) {
    expect_shape(sums, {signatures.shape(0), 8 * signatures.shape(1)},
                 "sums of another shape than bits");
}

void expect_sums(const std::optional<Sums>& sums, const OutputArray<std::uint8_t, 2>& signatures) {
    if (sums)
        expect_sums(*sums, signatures);
}

void expect_permutations(const std::vector<std::uint32_t>& factors,
                         const std::vector<std::uint32_t>& terms, std::size_t permutations) {
    expect(factors.size() == permutations && terms.size() == permutations,
           "factors and terms of another number than permutations");
}

void expect_packed(std::size_t permutations, std::size_t b, std::size_t bytes) {
    expect(b >= 1 && b <= 32 && (permutations * b + 7) / 8 == bytes,
           "rows that do not hold so many values");
}

void expect_pairs(const BoundSource& left_source, const BoundSource& right_source,
                  const IdArray& left, const IdArray& right,
                  const OutputArray<double, 1>& similarities) {
    expect(left.size() == right.size(), "pairs with one side");
    expect_below(left, left_source.source->size(), "pairs of documents that are not there");
    expect_below(right, right_source.source->size(), "pairs of documents that are not there");
    expect_shape(similarities, {left.size()}, "similarities of another number than pairs");
}

const bits::Checkpoint kCheckpoint = python_signals;

sign::Work work_on(std::size_t threads) {
    return {threads, kCheckpoint};
}

nb::tuple vocabulary_arrays(const Vocabulary& vocabulary) {
    std::vector<std::uint64_t> features, documents, occurrences;
    vocabulary.each([&](std::uint64_t feature, Vocabulary::Counts counts) {
        features.push_back(feature);
        documents.push_back(counts.documents);
        occurrences.push_back(counts.occurrences);
    });
    return nb::make_tuple(to_numpy(std::move(features)), to_numpy(std::move(documents)),
                          to_numpy(std::move(occurrences)));
}

BoundSource combined_source(nb::list sources, const std::vector<double>& factors) {
    expect(!factors.empty() && factors.size() == sources.size(), "a factor for each source");
    std::vector<sign::CombinedSource::Part> parts;
    for (std::size_t kind = 0; kind < factors.size(); ++kind) {
        const auto& part = nb::cast<const BoundSource&>(sources[kind]);
        expect(parts.empty() || part.source->size() == parts.front().source->size(),
               "sources of different numbers of documents");
        parts.push_back({part.source.get(), factors[kind]});
    }
    return {std::make_unique<sign::CombinedSource>(std::move(parts)),
            nb::list(sources.attr("copy")()), nb::none(), nb::none()};
}

void bind_sources(nb::module_& module) {
    nb::class_<BoundSource>(module, "Source")
        .def_static(
            "of_texts",
            [](nb::object documents, nb::object features) {
                const auto& texts = nb::cast<const Documents&>(documents).texts;
                const auto& how = nb::cast<const TextFeatures&>(features);
                return BoundSource{
                    std::make_unique<sign::TextSource>(texts, how.options, how.stems), documents,
                    features, nb::none()};
            },
            "documents"_a, "features"_a)
        .def_static(
            "of_features",
            [](const Offsets& offsets, const FeatureArray& features, const WeightArray& weights) {
                expect_offsets(offsets, features.size(),
                               "documents of features that are not there");
                expect_shape(weights, {features.size()}, "weights of another number than features");
                return BoundSource{
                    std::make_unique<sign::ReadySource>(offsets.data(), offsets.size() - 1,
                                                        features.data(), weights.data()),
                    nb::cast(offsets), nb::cast(features), nb::cast(weights)};
            },
            "offsets"_a.noconvert(), "features"_a.noconvert(), "weights"_a.noconvert())
        .def_static("of_kinds", &combined_source, "sources"_a, "factors"_a)
        .def("__len__", [](const BoundSource& self) { return self.source->size(); })
        .def_prop_ro("first_below_zero",
                     [](const BoundSource& self) { return self.source->first_below_zero(); });
}

void bind_vocabulary(nb::module_& module) {
    nb::enum_<WeightKind>(module, "WeightKind")
        .value("uniform", WeightKind::uniform)
        .value("count", WeightKind::count)
        .value("log_count", WeightKind::log_count)
        .value("tfidf", WeightKind::tfidf)
        .value("log_likelihood", WeightKind::log_likelihood)
        .value("idf", WeightKind::idf);

    nb::class_<RepeatedFeatures>(module, "RepeatedFeatures")
        .def(nb::init<std::size_t>(), "expected"_a)
        .def(
            "observe",
            [](RepeatedFeatures& self, const BoundSource& source, std::size_t threads) {
                const nb::gil_scoped_release nogil;
                self.observe(*source.source, threads, kCheckpoint);
            },
            "source"_a, "threads"_a);

    nb::class_<Vocabulary>(module, "Vocabulary")
        .def(nb::init<std::size_t>(), "most"_a)
        .def("__len__", &Vocabulary::size)
        .def(
            "observe",
            [](Vocabulary& self, const BoundSource& source, std::size_t threads,
               const RepeatedFeatures* repeated) {
                const nb::gil_scoped_release nogil;
                self.observe(*source.source, repeated, threads, kCheckpoint);
            },
            "source"_a, "threads"_a, "repeated"_a.none() = nb::none())
        .def("leave_out_above", &Vocabulary::leave_out_above, "documents"_a)
        .def(
            "add",
            [](Vocabulary& self, const FeatureArray& features, const FeatureArray& documents,
               const FeatureArray& occurrences) {
                expect_shape(documents, {features.size()},
                             "counts of another number than features");
                expect_shape(occurrences, {features.size()},
                             "counts of another number than features");
                self.reserve(features.size());
                for (std::size_t index = 0; index < features.size(); ++index)
                    self.add(features.data()[index],
                             {documents.data()[index], occurrences.data()[index]});
            },
            "features"_a.noconvert(), "documents"_a.noconvert(), "occurrences"_a.noconvert())
        .def(
            "add_totals",
            [](Vocabulary& self, std::uint64_t documents, std::uint64_t occurrences,
               std::uint64_t forgotten_documents, std::uint64_t forgotten_occurrences) {
                self.add_totals({documents, occurrences},
                                {forgotten_documents, forgotten_occurrences});
                self.forget_rare();
            },
            "documents"_a, "occurrences"_a, "forgotten_documents"_a, "forgotten_occurrences"_a)
        .def("arrays", &vocabulary_arrays)
        .def_prop_ro("totals", [](const Vocabulary& self) {
            return nb::make_tuple(self.totals().documents, self.totals().occurrences,
                                  self.forgotten().documents, self.forgotten().occurrences);
        });
}

// Similarities of documents by the weights of their features.
template <class Compare>
void bind_weighted(nb::module_& module, const char* name, Compare compare) {
    module.def(
        name,
        [compare](const BoundSource& left_source, const BoundSource& right_source,
                  const IdArray& left, const IdArray& right, std::size_t threads,
                  const OutputArray<double, 1>& similarities, WeightKind kind,
                  const Vocabulary* vocabulary) {
            expect_pairs(left_source, right_source, left, right, similarities);
            const nb::gil_scoped_release nogil;
            compare(
                {*left_source.source, *right_source.source, left.data(), right.data(), left.size()},
                kind, vocabulary, work_on(threads), similarities.data());
        },
        "left_source"_a, "right_source"_a, "left"_a.noconvert(), "right"_a.noconvert(), "threads"_a,
        "similarities"_a.noconvert(), "kind"_a, "vocabulary"_a.none());
}

void bind_signers(nb::module_& module) {
    module.def(
        "count_features",
        [](const BoundSource& source, std::size_t threads,
           const OutputArray<std::int64_t, 1>& counts) {
            expect_shape(counts, {source.source->size()},
                         "counts of another number than documents");
            const nb::gil_scoped_release nogil;
            sign::count_features(*source.source, work_on(threads), counts.data());
        },
        "source"_a, "threads"_a, "counts"_a.noconvert());

    module.def(
        "count_distinct",
        [](const BoundSource& source, std::size_t threads,
           const OutputArray<std::int64_t, 1>& counts) {
            expect_shape(counts, {source.source->size()},
                         "counts of another number than documents");
            const nb::gil_scoped_release nogil;
            sign::count_distinct(*source.source, work_on(threads), counts.data());
        },
        "source"_a, "threads"_a, "counts"_a.noconvert());

    module.def(
        "total_weights",
        [](const BoundSource& source, WeightKind kind, const Vocabulary* vocabulary,
           std::size_t threads, const OutputArray<double, 1>& totals) {
            expect_shape(totals, {source.source->size()},
                         "totals of another number than documents");
            expect(vocabulary != nullptr || kind == WeightKind::uniform ||
                       kind == WeightKind::count || kind == WeightKind::log_count,
                   "weights that need a vocabulary");
            const nb::gil_scoped_release nogil;
            sign::total_weights(*source.source, kind, vocabulary, work_on(threads), totals.data());
        },
        "source"_a, "kind"_a, "vocabulary"_a.none(), "threads"_a, "totals"_a.noconvert());

    module.def(
        "list_features",
        [](const BoundSource& source, WeightKind kind, const Vocabulary* vocabulary,
           std::size_t threads) {
            expect(vocabulary != nullptr || kind == WeightKind::uniform ||
                       kind == WeightKind::count || kind == WeightKind::log_count,
                   "weights that need a vocabulary");
            sign::FeatureLists lists;
            {
                const nb::gil_scoped_release nogil;
                lists = sign::list_features(*source.source, kind, vocabulary, work_on(threads));
            }
            return nb::make_tuple(to_numpy(std::move(lists.offsets)),
                                  to_numpy(std::move(lists.features)),
                                  to_numpy(std::move(lists.weights)));
        },
        "source"_a, "kind"_a, "vocabulary"_a.none(), "threads"_a);

    module.def(
        "simhash",
        [](const BoundSource& source, WeightKind kind, const Vocabulary* vocabulary,
           std::uint64_t seed, std::size_t threads, const OutputArray<std::uint8_t, 2>& signatures,
           const std::optional<Sums>& sums) {
            expect_documents(source, signatures);
            expect_sums(sums, signatures);
            const nb::gil_scoped_release nogil;
            sign::simhash(*source.source, kind, vocabulary, signatures.shape(1), seed,
                          work_on(threads), signatures.data(), sums ? sums->data() : nullptr);
        },
        "source"_a, "kind"_a, "vocabulary"_a.none(), "seed"_a, "threads"_a,
        "signatures"_a.noconvert(), "sums"_a.noconvert().none());

    module.def(
        "normal_simhash",
        [](const BoundSource& source, WeightKind kind, const Vocabulary* vocabulary,
           std::uint64_t seed, const NormalArray& normals, double unit, std::size_t threads,
           const OutputArray<std::uint8_t, 2>& signatures, const std::optional<Sums>& sums) {
            expect_documents(source, signatures);
            expect_shape(normals, {std::size_t{1} << 15}, "normals that 15 bits do not choose");
            expect_sums(sums, signatures);
            const nb::gil_scoped_release nogil;
            sign::normal_simhash(*source.source, kind, vocabulary, signatures.shape(1), seed,
                                 normals.data(), unit, work_on(threads), signatures.data(),
                                 sums ? sums->data() : nullptr);
        },
        "source"_a, "kind"_a, "vocabulary"_a.none(), "seed"_a, "normals"_a.noconvert(), "unit"_a,
        "threads"_a, "signatures"_a.noconvert(), "sums"_a.noconvert().none());

    module.def(
        "topsig",
        [](const BoundSource& source, WeightKind kind, const Vocabulary* vocabulary,
           std::size_t bytes, std::size_t density, std::uint64_t seed, std::size_t terms_per_part,
           std::size_t threads, bool masked, const std::optional<Sums>& sums) {
            if (sums) {
                expect(terms_per_part == 0, "sums of documents in parts");
                expect_shape(*sums, {source.source->size(), 8 * bytes},
                             "sums of another shape than bits");
            }
            std::vector<std::int64_t> parts;
            std::vector<std::uint8_t> signatures, masks;
            {
                const nb::gil_scoped_release nogil;
                sign::topsig(*source.source, kind, vocabulary, bytes, density, seed, terms_per_part,
                             work_on(threads), parts, signatures, masked ? &masks : nullptr,
                             sums ? sums->data() : nullptr);
            }
            return tuple_of(parts, signatures, masks);
        },
        "source"_a, "kind"_a, "vocabulary"_a.none(), "bytes"_a, "density"_a, "seed"_a,
        "terms_per_part"_a, "threads"_a, "masked"_a, "sums"_a.noconvert().none() = nb::none());

    module.def(
        "minhash",
        [](const BoundSource& source, const std::vector<std::uint32_t>& factors,
           const std::vector<std::uint32_t>& terms, std::size_t threads,
           const OutputArray<std::uint32_t, 2>& minima) {
            expect_documents(source, minima);
            expect_permutations(factors, terms, minima.shape(1));
            const nb::gil_scoped_release nogil;
            sign::minhash(*source.source, factors, terms, work_on(threads), minima.data());
        },
        "source"_a, "factors"_a, "terms"_a, "threads"_a, "minima"_a.noconvert());

    module.def(
        "weighted_minhash",
        [](const BoundSource& source, WeightKind kind, const Vocabulary* vocabulary,
           std::uint64_t seed, std::size_t threads, const OutputArray<std::uint32_t, 2>& values) {
            expect_documents(source, values);
            const nb::gil_scoped_release nogil;
            sign::weighted_minhash(*source.source, kind, vocabulary, seed, values.shape(1),
                                   work_on(threads), values.data());
        },
        "source"_a, "kind"_a, "vocabulary"_a.none(), "seed"_a, "threads"_a, "values"_a.noconvert());

    module.def(
        "mersenne_minima",
        [](const FeatureArray& hashes, const FeatureArray& factors, const FeatureArray& terms,
           const OutputArray<std::uint64_t, 1>& minima) {
            expect_shape(factors, {minima.size()}, "factors of another number than permutations");
            expect_shape(terms, {minima.size()}, "terms of another number than permutations");
            const nb::gil_scoped_release nogil;
            sign::mersenne_minima(hashes.data(), hashes.size(), factors.data(), terms.data(),
                                  minima.size(), minima.data());
        },
        "hashes"_a.noconvert(), "factors"_a.noconvert(), "terms"_a.noconvert(),
        "minima"_a.noconvert());

    module.def(
        "packed_minhash",
        [](const BoundSource& source, const std::vector<std::uint32_t>& factors,
           const std::vector<std::uint32_t>& terms, std::size_t b, std::size_t threads,
           const OutputArray<std::uint8_t, 2>& signatures) {
            expect_documents(source, signatures);
            expect_permutations(factors, terms, factors.size());
            expect_packed(factors.size(), b, signatures.shape(1));
            const nb::gil_scoped_release nogil;
            sign::packed_minhash(*source.source, factors, terms, b, work_on(threads),
                                 signatures.data());
        },
        "source"_a, "factors"_a, "terms"_a, "b"_a, "threads"_a, "signatures"_a.noconvert());

    module.def(
        "pack_minima",
        [](const MinimaArray& minima, std::size_t b, bool mix, std::size_t threads,
           const OutputArray<std::uint8_t, 2>& signatures) {
            expect(signatures.shape(0) == minima.shape(0), "signatures of other documents");
            expect_packed(minima.shape(1), b, signatures.shape(1));
            const nb::gil_scoped_release nogil;
            sign::pack_minima(minima.data(), minima.shape(0), minima.shape(1), b, mix,
                              work_on(threads), signatures.data());
        },
        "minima"_a.noconvert(), "b"_a, "mix"_a, "threads"_a, "signatures"_a.noconvert());

    module.def(
        "equal_values",
        [](const SignatureArray& left, const SignatureArray& right, std::size_t permutations,
           std::size_t b, const OutputArray<std::int32_t, 1>& equal) {
            expect(left.shape(0) == right.shape(0) && left.shape(1) == right.shape(1),
                   "pairs of signatures that are not as many and as wide");
            expect_packed(permutations, b, left.shape(1));
            expect_shape(equal, {left.shape(0)}, "counts of another number than pairs");
            const nb::gil_scoped_release nogil;
            sign::equal_values(left.data(), right.data(), left.shape(0), permutations, b,
                               equal.data());
        },
        "left"_a.noconvert(), "right"_a.noconvert(), "permutations"_a, "b"_a,
        "equal"_a.noconvert());

    module.def(
        "project",
        [](const VectorArray& vectors, const VectorArray& matrix, std::size_t threads,
           const OutputArray<std::uint8_t, 2>& signatures) {
            expect(signatures.shape(0) == vectors.shape(0), "signatures of other vectors");
            expect_shape(matrix, {vectors.shape(1), 8 * signatures.shape(1)},
                         "a matrix of another shape");
            const nb::gil_scoped_release nogil;
            sign::project(vectors.data(), vectors.shape(0), vectors.shape(1), matrix.data(),
                          signatures.shape(1), work_on(threads), signatures.data());
        },
        "vectors"_a.noconvert(), "matrix"_a.noconvert(), "threads"_a, "signatures"_a.noconvert());

    module.def(
        "project_with_sums",
        [](const VectorArray& vectors, const VectorArray& matrix, std::size_t threads,
           const OutputArray<std::uint8_t, 2>& signatures, const Sums& sums) {
            expect(signatures.shape(0) == vectors.shape(0), "signatures of other vectors");
            expect_shape(matrix, {vectors.shape(1), 8 * signatures.shape(1)},
                         "a matrix of another shape");
            expect_sums(sums, signatures);
            const nb::gil_scoped_release nogil;
            sign::project_with_sums(vectors.data(), vectors.shape(0), vectors.shape(1),
                                    matrix.data(), signatures.shape(1), work_on(threads),
                                    signatures.data(), sums.data());
        },
        "vectors"_a.noconvert(), "matrix"_a.noconvert(), "threads"_a, "signatures"_a.noconvert(),
        "sums"_a.noconvert());

    module.def(
        "jaccard",
        [](const BoundSource& left_source, const BoundSource& right_source, const IdArray& left,
           const IdArray& right, std::size_t threads, const OutputArray<double, 1>& similarities) {
            expect_pairs(left_source, right_source, left, right, similarities);
            const nb::gil_scoped_release nogil;
            sign::jaccard(
                {*left_source.source, *right_source.source, left.data(), right.data(), left.size()},
                work_on(threads), similarities.data());
        },
        "left_source"_a, "right_source"_a, "left"_a.noconvert(), "right"_a.noconvert(), "threads"_a,
        "similarities"_a.noconvert());

    module.def(
        "containment",
        [](const BoundSource& left_source, const BoundSource& right_source, const IdArray& left,
           const IdArray& right, std::size_t threads, const OutputArray<double, 1>& similarities) {
            expect_pairs(left_source, right_source, left, right, similarities);
            const nb::gil_scoped_release nogil;
            sign::containment(
                {*left_source.source, *right_source.source, left.data(), right.data(), left.size()},
                work_on(threads), similarities.data());
        },
        "left_source"_a, "right_source"_a, "left"_a.noconvert(), "right"_a.noconvert(), "threads"_a,
        "similarities"_a.noconvert());

    bind_weighted(module, "weighted_jaccard", &sign::weighted_jaccard);
    bind_weighted(module, "weighted_containment", &sign::weighted_containment);
    bind_weighted(module, "cosine", &sign::cosine);
}

}  // namespace

void bind_sign(nb::module_& module) {
    bind_sources(module);
    bind_vocabulary(module);
    bind_signers(module);
}

}  // namespace lookalike::bindings
