// Some of the queries of a call, put together so that they can be searched for as one.
#pragma once

#include <cstdint>
#include <vector>

#include "scan/scan.hpp"

namespace lookalike::search {

struct QueryPart {
    std::vector<std::size_t> places;  // where each is among all
    Signatures queries;

    QueryPart(const Signatures& all, std::vector<std::size_t> chosen)
        : places(std::move(chosen)), queries{all.data, places.size(), all.bytes} {
        if (places.size() == all.count)
            return;
        bytes_.reserve(places.size() * all.bytes);
        for (const std::size_t place : places)
            bytes_.insert(bytes_.end(), all.row(place), all.row(place) + all.bytes);
        queries.data = bytes_.data();
    }
    QueryPart(const QueryPart&) = delete;

  private:
    std::vector<std::uint8_t> bytes_;
};

}  // namespace lookalike::search
