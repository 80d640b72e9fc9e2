// A score for each row of a segment, in one byte where it can be: a table of a million bytes stays
// in the second-level cache while hundreds of thousands of postings add to it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lookalike::search {

class ScoreTable {
  public:
    // Makes the table so many rows long. All scores are 0 before and after.
    void resize(std::size_t rows) {
        rows_ = rows;
        if (low_.size() < rows)
            low_.resize(rows);
    }

    std::size_t rows() const { return rows_; }
    const std::uint8_t* low() const { return low_.data(); }
    bool is_zero(std::size_t row) const { return low_[row] == 0; }
    std::uint32_t score(std::size_t row) const {
        return low_[row] + (overflowed_.empty() ? 0u : kCarry * high_[row]);
    }

    // Rows whose score is more than their byte tells.
    const std::vector<std::uint64_t>& overflowed() const { return overflowed_; }
    bool has_overflowed(std::size_t row) const { return !overflowed_.empty() && high_[row] != 0; }

    // Adds an amount of 1 to 255 to the scores of rows, which must be below `rows()`.
    template <class Row>
    void add(const Row* rows, std::size_t count, std::uint32_t amount) {
        std::uint8_t* const low = low_.data();
        for (std::size_t at = 0; at < count; ++at)
            add_to(low, rows[at], amount);
    }

    // The same for rows that have a score already; others are passed over.
    template <class Row>
    void add_where_scored(const Row* rows, std::size_t count, std::uint32_t amount) {
        std::uint8_t* const low = low_.data();
        for (std::size_t at = 0; at < count; ++at)
            if (low[rows[at]] != 0)
                add_to(low, rows[at], amount);
    }

    // The same for postings of different amounts; `row_of` and `amount_of` take them apart.
    template <class Key, class RowOf, class AmountOf>
    void add(const Key* keys, std::size_t count, RowOf row_of, AmountOf amount_of) {
        std::uint8_t* const low = low_.data();
        for (std::size_t at = 0; at < count; ++at)
            add_to(low, row_of(keys[at]), amount_of(keys[at]));
    }

    // Adds the scores of another table, `only_scored`: where there is a score already.
    void add_all(const ScoreTable& other, bool only_scored) {
        for (const std::uint64_t row : other.overflowed_)
            if (!only_scored || low_[row] != 0)
                carry(row, other.high_[row]);
        for (std::size_t row = 0; row < rows_; ++row)
            if (other.low_[row] != 0 && (!only_scored || low_[row] != 0))
                add_to(low_.data(), row, other.low_[row]);
    }

    void clear() {
        std::fill_n(low_.begin(), rows_, std::uint8_t{0});
        for (const std::uint64_t row : overflowed_)
            high_[row] = 0;
        overflowed_.clear();
    }

  private:
    // What a carry stands for. One less than a byte holds, so that a score never leaves a byte of
    // 0, which would look like no score.
    static constexpr std::uint32_t kCarry = 255;

    void add_to(std::uint8_t* low, std::size_t row, std::uint32_t amount) {
        std::uint32_t sum = low[row] + amount;
        if (sum > 255) [[unlikely]] {
            carry(row, 1);
            sum -= kCarry;
        }
        low[row] = static_cast<std::uint8_t>(sum);
    }

    [[gnu::noinline]] void carry(std::size_t row, std::uint32_t times) {
        if (high_.size() < low_.size())
            high_.resize(low_.size());
        if (high_[row] == 0)
            overflowed_.push_back(row);
        high_[row] = static_cast<std::uint16_t>(high_[row] + times);
    }

    std::size_t rows_ = 0;
    std::vector<std::uint8_t> low_;
    std::vector<std::uint16_t> high_;  // carries; as long as `low_` once there has been one
    std::vector<std::uint64_t> overflowed_;
};

}  // namespace lookalike::search
