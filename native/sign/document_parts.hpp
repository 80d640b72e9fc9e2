// Long documents cut into parts of about equal length, by where their features are.
#pragma once

#include <vector>

#include "sign/bag.hpp"

namespace lookalike::sign {

// Of n terms in all, those from n * i / count on are in part i. Several kinds are mixed for that:
// term t of the m of a kind is at (2t + 1) / 2m of the document, and where two are at one place,
// that of the first kind comes first.
class DocumentParts {
  public:
    DocumentParts(const Bag& bag, std::size_t count) : bag_(bag), count_(count) {
        std::size_t begin = 0;
        for (const Bag::Run& run : bag.runs) {
            kinds_.push_back({begin, run.end - begin, 0});
            begin = run.end;
        }
    }

    // The next part; there are `count` of them.
    void next(Bag& part) {
        const std::size_t terms = bag_.features.size();
        const std::size_t begin = terms * part_ / count_, end = terms * (part_ + 1) / count_;
        ++part_;
        part.clear();
        if (kinds_.empty() || count_ == 1) {
            take(begin, end, part);
            part.runs = bag_.runs;
            return;
        }
        const std::vector<Kind> before = kinds_;
        for (std::size_t term = begin; term < end; ++term)
            ++first_left().taken;
        for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
            const Kind& now = kinds_[kind];
            take(now.begin + before[kind].taken, now.begin + now.taken, part);
            part.runs.push_back({part.features.size(), bag_.runs[kind].factor});
        }
    }

  private:
    struct Kind {
        std::size_t begin, size, taken;
    };

    // The kind whose next term is first in the document.
    Kind& first_left() {
        Kind* first = nullptr;
        for (Kind& kind : kinds_)
            if (kind.taken < kind.size &&
                (first == nullptr ||
                 (2 * kind.taken + 1) * first->size < (2 * first->taken + 1) * kind.size))
                first = &kind;
        return *first;
    }

    void take(std::size_t begin, std::size_t end, Bag& part) const {
        const auto from = static_cast<std::ptrdiff_t>(begin), to = static_cast<std::ptrdiff_t>(end);
        part.features.insert(part.features.end(), bag_.features.begin() + from,
                             bag_.features.begin() + to);
        if (!bag_.weights.empty())
            part.weights.insert(part.weights.end(), bag_.weights.begin() + from,
                                bag_.weights.begin() + to);
    }

    const Bag& bag_;
    std::size_t count_, part_ = 0;
    std::vector<Kind> kinds_;
};

}  // namespace lookalike::sign
