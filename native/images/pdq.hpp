// PDQ hashes of images: 256 bits, equal to those of Meta's reference in every bit.
//
// Sums are single-precision numbers that are added in the order of the reference, so that they are
// rounded as it rounds them. Rows are processed as they come, and of the second filter only what
// the hash needs is computed: memory is that of a few dozen rows, not of the image.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lookalike::images {

inline constexpr std::size_t kPdqBytes = 32, kPdqOrientations = 8;
inline constexpr std::size_t kPdqLeastSide = 5;         // pixels; the hash of less is 0
inline constexpr std::size_t kPdqMostSide = 1u << 24u;  // pixels

// Moving averages over the items of a line. The window is cut where it reaches over an end; the
// average around an item is known once the line has come `ahead` items further.
class Box {
  public:
    explicit Box(std::size_t length);

    std::size_t window() const { return window_; }
    std::size_t ahead() const { return ahead_; }
    // Items of the line in the average around an item.
    std::size_t count(std::size_t item) const;

  private:
    std::size_t length_, window_, ahead_;
};

// The averages of rows of numbers with the rows above and below, as rows come in.
class RowAverages {
  public:
    RowAverages(std::size_t rows, std::size_t width);

    // Adds a row; returns whether there is a result, which is then in `result`.
    bool add(const float* row, float* result);
    // Writes the next result after the last row.
    void end(float* result);

  private:
    void subtract();
    void write(float* result);

    Box box_;
    std::size_t width_, added_ = 0, written_ = 0;
    std::vector<float> sums_;
    std::vector<float> held_;  // the rows of a window, in turn
};

class Pdq {
  public:
    Pdq(std::size_t rows, std::size_t columns);

    // Adds rows of pixels: of 3 bytes each (red, green, blue), or of one (gray).
    void feed(const std::uint8_t* pixels, std::size_t rows, std::size_t channels);
    std::size_t missing() const { return rows_ - fed_; }  // rows
    std::size_t columns() const { return columns_; }

    // Writes the hash, and those of the image turned by the entries 2, 3, ... of EXIF orientation,
    // from derived frequencies; returns the quality, from 0 to 100. All rows must have been added.
    int finish(std::uint8_t* signatures, std::size_t orientations);

  private:
    void add_rows(std::size_t rows);
    float* next_once_averaged();
    void add_once_averaged();
    void filter_again();
    void add_twice_averaged(const float* row);

    std::size_t rows_, columns_, fed_ = 0;
    std::size_t waiting_ = 0, row_ = 0, sampled_ = 0;
    bool plain_;                                   // 64 × 64 pixels are not filtered
    std::vector<std::size_t> at_row_, at_column_;  // where the grid is sampled
    Box across_;
    RowAverages first_, second_;
    std::vector<float> gray_, averaged_, once_averaged_, samples_, sampled_result_, grid_;
};

}  // namespace lookalike::images
