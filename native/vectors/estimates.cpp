#include "vectors/estimates.hpp"

#include <vector>

namespace lookalike::vectors {

namespace {

constexpr std::size_t kNibble = 16, kPairsPerTask = 4096;

// For each four bits, what each of their 16 values adds.
class Table {
  public:
    explicit Table(std::size_t bits) : bytes_(bits / 8), sums_(bits / 4 * kNibble) {}

    void fill(const float* weights) {
        for (std::size_t four = 0; four < 2 * bytes_; ++four)
            for (std::size_t value = 0; value < kNibble; ++value) {
                double sum = 0;
                for (std::size_t bit = 0; bit < 4; ++bit) {
                    const double weight = weights[4 * four + bit];
                    sum += (value >> bit & 1) != 0 ? weight : -weight;
                }
                sums_[four * kNibble + value] = sum;
            }
    }

    double operator()(const std::uint8_t* signature) const {
        double low = 0, high = 0;
        const double* sums = sums_.data();
        for (std::size_t byte = 0; byte < bytes_; ++byte, sums += 2 * kNibble) {
            low += sums[signature[byte] & 15];
            high += sums[kNibble + (signature[byte] >> 4)];
        }
        return low + high;
    }

  private:
    std::size_t bytes_;
    std::vector<double> sums_;
};

}  // namespace

void signed_sums(const BitWeights& weights, const std::uint8_t* signatures,
                 const std::int64_t* asked, std::size_t count, const Work& work, double* sums) {
    bits::share_out_runs(count, kPairsPerTask, work.threads, work.checkpoint,
                         [&](std::size_t, std::size_t begin, std::size_t end) {
                             Table table(weights.bits);
                             for (std::size_t at = begin; at < end; ++at) {
                                 const auto query = static_cast<std::size_t>(asked[at]);
                                 if (at == begin || asked[at] != asked[at - 1])
                                     table.fill(weights.values + query * weights.bits);
                                 sums[at] = table(signatures + at * (weights.bits / 8));
                             }
                         });
}

}  // namespace lookalike::vectors
