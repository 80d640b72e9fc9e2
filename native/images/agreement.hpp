// Whether two images show the same, judged by small gray copies of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "images/averages.hpp"

namespace lookalike::images {

inline constexpr std::size_t kThumbnail = 64;  // gray values each way, whatever the image's shape

// Writes the averages of 64 × 64 equal parts of an image, in whole gray levels.
void thumbnail(const Blocks& blocks, std::uint8_t* gray);

// Where the first image lies in the second: a place x in the first, from 0 to 1, is at
// scale × x + shift in the second, across and down.
struct Placement {
    double across_scale = 1, across_shift = 0, down_scale = 1, down_shift = 0;
    // Of an image that was turned a little, what is below the middle lies further across, and what
    // is right of it further down.
    double across_lean = 0, down_lean = 0;
};

struct Agreement {
    double correlation = 0;  // of gray values where both images are, plain borders left out
    double windows = 0;      // squares of a quarter of that each way, in which there is detail
    double agreeing = 0;     // those in which both have the same
    double inside = 0;       // correlation of gray values in these
    double evidence = 0;     // bits: how unlikely it is that other images agree as well
    double slow = 0;         // bits of it in frequencies below 6, which fine detail does not have
    double details = 0;      // small windows, of 225, in which both have the same fine detail
    double difference = 0;   // mean square of how far their slowest changes are apart
    double first_share = 0, second_share = 0;  // of the area of each image that both show
};

// Compares two thumbnails where the first lies in the second. With `refine`, the placement is
// moved to where they agree best. Nothing is compared, and all is 0, if less than a twentieth of
// either, across or down, is in the other.
//
// Rows and columns at the border of an image that hardly change along it are left out, if they are
// a border of both: a frame, or the ground of a logo. What remains is averaged over 32 × 32 parts.
// A window is 8 × 8 of these, at every fourth. It has detail if the gray values of either have a
// standard deviation of 2 levels, and agrees if they correlate by 0.7.
//
// Sides on which most windows do not agree, such as a caption, are left out, an eighth each. If
// half of all windows agree, the rest is averaged over 64 × 64 parts, and compared in three ways:
//
// The evidence is that of the frequencies of both, taken together by half octaves in three
// directions: the number of those that carry the energy, times how many bits of the amplitude are
// the same. Smooth images, frames and symbols have few. What is below half a gray level is noise.
//
// Fine detail is what differs from the mean of 5 × 5 parts around it. Windows of 8 × 8 parts are
// counted where it has a standard deviation of a gray level in either, and correlates by 0.5.
//
// The difference is that of the frequencies below 4, after both are brought to the same contrast.
// Copies of a smooth image differ by noise alone, which is about as strong at all frequencies.
//
// To refine a placement, it is moved, scaled and then leaned in small steps, while gray values
// correlate more.
Agreement compare(const std::uint8_t* first, const std::uint8_t* second, Placement& placement,
                  bool refine);

}  // namespace lookalike::images
