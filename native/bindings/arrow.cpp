#include "bindings/arrow.hpp"

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace nb = nanobind;

// The three structures of the interface, as its specification lays them out.
extern "C" {

struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    int64_t flags;
    int64_t n_children;
    ArrowSchema** children;
    ArrowSchema* dictionary;
    void (*release)(ArrowSchema*);
    void* private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void** buffers;
    ArrowArray** children;
    ArrowArray* dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
    int (*get_next)(ArrowArrayStream*, ArrowArray* out);
    const char* (*get_last_error)(ArrowArrayStream*);
    void (*release)(ArrowArrayStream*);
    void* private_data;
};
}

namespace lookalike::bindings {

namespace {

template <class Struct>
struct Released : Struct {
    Released() : Struct{} {}
    Released(const Released&) = delete;
    Released& operator=(const Released&) = delete;
    ~Released() {
        if (this->release != nullptr)
            this->release(this);
    }
};

using Chunks = std::vector<std::unique_ptr<Released<ArrowArray>>>;

// Bit i of the validity bitmap, which is buffer 0 and may be absent.
bool is_null(const ArrowArray& array, int64_t index) {
    const auto* const valid = static_cast<const std::uint8_t*>(array.buffers[0]);
    return valid != nullptr && (valid[index / 8] >> (index % 8) & 1) == 0;
}

// Strings with offsets of the given type: buffer 1 the offsets, buffer 2 the bytes.
template <class Offset>
std::string_view text_at(const ArrowArray& array, int64_t index) {
    const auto* const offsets = static_cast<const Offset*>(array.buffers[1]);
    const auto* const data = static_cast<const char*>(array.buffers[2]);
    const auto begin = static_cast<std::size_t>(offsets[index]);
    return {data + begin, static_cast<std::size_t>(offsets[index + 1]) - begin};
}

// String views: up to twelve bytes are in the view itself, longer ones in a numbered buffer.
std::string_view viewed_text_at(const ArrowArray& array, int64_t index) {
    const auto* const view = static_cast<const char*>(array.buffers[1]) + 16 * index;
    std::int32_t length, buffer, offset;
    std::memcpy(&length, view, 4);
    if (length <= 12)
        return {view + 4, static_cast<std::size_t>(length)};
    std::memcpy(&buffer, view + 8, 4);
    std::memcpy(&offset, view + 12, 4);
    return {static_cast<const char*>(array.buffers[2 + buffer]) + offset,
            static_cast<std::size_t>(length)};
}

using TextAt = std::string_view (*)(const ArrowArray&, int64_t);

TextAt reader_for(const ArrowSchema& schema) {
    const std::string_view format = schema.dictionary != nullptr ? "a dictionary" : schema.format;
    if (format == "u")
        return text_at<std::int32_t>;
    if (format == "U")
        return text_at<std::int64_t>;
    if (format == "vu")
        return viewed_text_at;
    throw std::invalid_argument("documents are an Arrow column of type '" + std::string(format) +
                                "'; expected strings: cast the column first");
}

}  // namespace

ArrowTexts arrow_texts(nb::capsule capsule) {
    auto* const stream =
        static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule.ptr(), "arrow_array_stream"));
    if (stream == nullptr)
        throw nb::python_error();
    if (stream->release == nullptr)
        throw std::invalid_argument("documents are an Arrow stream that was already read");
    const auto check = [&](int status) {
        if (status == 0)
            return;
        const char* const reason = stream->get_last_error(stream);
        throw std::invalid_argument(std::string("documents are an Arrow stream that failed: ") +
                                    (reason != nullptr ? reason : "no reason given"));
    };

    Released<ArrowSchema> schema;
    check(stream->get_schema(stream, &schema));
    const TextAt text = reader_for(schema);
    const auto chunks = std::make_shared<Chunks>();
    ArrowTexts result;
    while (true) {
        auto chunk = std::make_unique<Released<ArrowArray>>();
        check(stream->get_next(stream, chunk.get()));
        if (chunk->release == nullptr)
            break;
        result.texts.reserve(result.texts.size() + static_cast<std::size_t>(chunk->length));
        for (int64_t index = chunk->offset; index < chunk->offset + chunk->length; ++index) {
            if (is_null(*chunk, index))
                throw std::invalid_argument("document " + std::to_string(result.texts.size()) +
                                            " is null; fill or drop nulls first");
            result.texts.push_back(text(*chunk, index));
        }
        chunks->push_back(std::move(chunk));
    }
    result.owner = chunks;
    return result;
}

}  // namespace lookalike::bindings
