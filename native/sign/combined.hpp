// Several kinds of features of the same documents.
#pragma once

#include <utility>

#include "bits/hash.hpp"
#include "sign/bag.hpp"

namespace lookalike::sign {

// Each kind with its factor; all have as many documents, and outlive this.
//
// The features of kind i are those that it has alone if i is 0, and otherwise
// fmix64(feature ^ fmix64(kKinds + i)), so that what two kinds have in common by the way they are
// hashed (the word "cat" and the characters "cat") are two features, of unrelated bits.
class CombinedSource : public Source {
  public:
    struct Part {
        const Source* source;
        double factor;
    };

    explicit CombinedSource(std::vector<Part> parts) : parts_(std::move(parts)) {}

    std::size_t size() const override { return parts_.front().source->size(); }
    void append(std::size_t document, text::Scratch& scratch, Bag& bag) const override {
        for (std::size_t kind = 0; kind < parts_.size(); ++kind) {
            const std::size_t begin = bag.features.size();
            parts_[kind].source->append(document, scratch, bag);
            if (kind > 0) {
                const std::uint64_t salt = bits::fmix64(kKinds + kind);
                for (std::size_t index = begin; index < bag.features.size(); ++index)
                    bag.features[index] = bits::fmix64(bag.features[index] ^ salt);
            }
            bag.runs.push_back({bag.features.size(), parts_[kind].factor});
        }
    }

    std::int64_t first_below_zero() const override {
        std::int64_t first = -1;
        for (const Part& part : parts_) {
            const std::int64_t found = part.source->first_below_zero();
            if (found >= 0 && (first < 0 || found < first))
                first = found;
        }
        return first;
    }

  private:
    // Arbitrary, and far from what seeds of signers come to.
    static constexpr std::uint64_t kKinds = 0x6c62272e07bb0142u;

    std::vector<Part> parts_;
};

}  // namespace lookalike::sign
