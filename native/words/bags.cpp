#include "words/bags.hpp"

#include <algorithm>
#include <array>

#include "bits/hash.hpp"
#include "bits/operation.hpp"
#include "text/features.hpp"
#include "text/unicode.hpp"
#include "words/porter.hpp"

namespace lookalike::words {

namespace {

constexpr std::uint64_t kHashMask = (std::uint64_t{1} << 40) - 1;
constexpr std::size_t kLongestStemmed = 64;  // English words are shorter
constexpr std::size_t kMostKnown = 1 << 16;  // words of a scratch; then it begins anew
constexpr std::uint64_t kCountBits = 24, kCountMask = (std::uint64_t{1} << kCountBits) - 1;
constexpr std::size_t kMostKnownBytes = 16;
constexpr std::size_t kBucketBits = 8, kFewEntries = 48;
constexpr std::size_t kTextsPerRun = 64;

std::uint64_t hash_of_stem(const unsigned char* word, std::size_t length) {
    char letters[kLongestStemmed];
    std::copy_n(word, length, letters);
    return bits::xxh64(letters, stem(letters, length));
}

std::uint64_t hash_of(const unsigned char* word, std::size_t length, WordKind kind) {
    const auto is_letter = [](unsigned char byte) { return byte >= 'a' && byte <= 'z'; };
    const bool english = kind == WordKind::porter && length <= kLongestStemmed &&
                         std::all_of(word, word + length, is_letter);
    return (english ? hash_of_stem(word, length) : bits::xxh64(word, length)) & kHashMask;
}

bool is_upper(unsigned char byte) {
    return byte >= 'A' && byte <= 'Z';
}
bool is_lower(unsigned char byte) {
    return byte >= 'a' && byte <= 'z';
}
bool is_digit(unsigned char byte) {
    return byte >= '0' && byte <= '9';
}
bool is_ascii(const unsigned char* word, std::size_t length) {
    return std::all_of(word, word + length, [](unsigned char byte) { return byte < 0x80; });
}

// Whether a part of a compound begins at `at`: "Top|Sig", "TCP|Sockets", "utf|8".
bool begins_part(const unsigned char* word, std::size_t at, std::size_t length) {
    const unsigned char before = word[at - 1], here = word[at];
    if (is_digit(before) != is_digit(here))
        return true;
    return is_upper(here) &&
           (is_lower(before) || (is_upper(before) && at + 1 < length && is_lower(word[at + 1])));
}

// The word in lower case, in the scratch.
std::size_t lower_word(const unsigned char* word, std::size_t length, BagScratch& scratch) {
    scratch.lowered.resize(std::max(scratch.lowered.size(), 2 * length + 4));
    unsigned char* to = scratch.lowered.data();
    if (is_ascii(word, length)) {
        for (std::size_t at = 0; at < length; ++at)
            to[at] = text::kAsciiLower[word[at]];
        return length;
    }
    for (const unsigned char *at = word, *const end = word + length; at < end;) {
        const text::Decoded decoded = text::decode(at, end);
        at += decoded.length;
        const bool mark = text::classify(decoded.code) == text::CharacterClass::mark;
        to = text::encode(mark ? decoded.code : text::lower(decoded.code), to);
    }
    return static_cast<std::size_t>(to - scratch.lowered.data());
}

// Whether a word is a character of a script without spaces.
bool is_alone(const unsigned char* word, std::size_t length) {
    return *word >= 0x80 &&
           text::classify(text::decode(word, word + length).code) == text::CharacterClass::alone;
}

// Calls on_piece(bytes, length) for each `count` characters that follow each other; `ends` are
// those of the characters.
template <class OnPiece>
void each_piece(const unsigned char* from, const std::vector<std::size_t>& ends, std::size_t count,
                OnPiece on_piece) {
    for (std::size_t last = count; last <= ends.size(); ++last) {
        const std::size_t begin = last == count ? 0 : ends[last - count - 1];
        on_piece(from + begin, ends[last - 1] - begin);
    }
}

// Calls on_piece(bytes, length) for each run of three characters, or for a shorter word.
template <class OnPiece>
void each_trigram(const unsigned char* word, std::size_t length, BagScratch& scratch,
                  OnPiece on_piece) {
    scratch.ends.clear();
    for (std::size_t at = 0; at < length;) {
        at += text::decode(word + at, word + length).length;
        scratch.ends.push_back(at);
    }
    each_piece(word, scratch.ends, std::min<std::size_t>(3, scratch.ends.size()), on_piece);
}

// Calls on_piece(piece) for each piece of a word, until it returns false. A character has 21 bits.
template <class OnPiece>
void each_word_piece(const unsigned char* word, std::size_t length, OnPiece on_piece) {
    constexpr std::uint64_t kThree = (std::uint64_t{1} << 63) - 1;
    constexpr std::uint64_t kOne = 0x9E3779B185EBCA87u, kTwo = 0xC2B2AE3D27D4EB4Fu;
    std::uint64_t three = ' ';  // the last characters
    std::size_t seen = 1;
    const auto read = [&](std::uint64_t next) {
        const std::uint64_t piece = (three * kOne + next) * kTwo >> (64 - kPieceBits);
        three = (three << 21 | next) & kThree;
        return ++seen < 4 || on_piece(static_cast<std::size_t>(piece));
    };
    bool more = true;
    for (std::size_t at = 0; at < length && more;) {
        if (word[at] < 0x80) {
            more = read(word[at++]);
            continue;
        }
        const text::Decoded decoded = text::decode(word + at, word + length);
        at += decoded.length;
        more = read(decoded.code);
    }
    if (more)
        read(' ');
}

// Adds the pieces of a word, until there are as many as a document has at most.
void add_pieces(const unsigned char* word, std::size_t length, Pieces& pieces) {
    if (pieces.count() < kMostPieces)
        each_word_piece(word, length, [&](std::size_t piece) {
            pieces.add(piece);
            return pieces.count() < kMostPieces;
        });
}

// Calls on_run() for each run of characters of scripts without spaces, which is in the scratch.
template <class OnRun>
void each_run(std::string_view text, BagScratch& scratch, OnRun on_run) {
    std::vector<unsigned char>& run = scratch.run;
    std::vector<std::size_t>& ends = scratch.ends;
    run.clear();
    ends.clear();
    const auto end_run = [&] {
        if (!ends.empty())
            on_run();
        run.clear();
        ends.clear();
    };
    const auto* at = reinterpret_cast<const unsigned char*>(text.data());
    const auto* const end = at + text.size();
    while (at < end) {
        if (*at < 0x80) {
            end_run();
            at = std::find_if(at, end, [](unsigned char byte) { return byte >= 0x80; });
            continue;
        }
        const text::Decoded decoded = text::decode(at, end);
        const text::CharacterClass kind = text::classify(decoded.code);
        if (kind == text::CharacterClass::alone) {
            run.insert(run.end(), at, at + decoded.length);
            ends.push_back(run.size());
        } else if (kind == text::CharacterClass::mark) {
            if (!ends.empty()) {
                run.insert(run.end(), at, at + decoded.length);
                ends.back() = run.size();
            }
        } else {
            end_run();
        }
        at += decoded.length;
    }
    end_run();
}

// Calls on_part(hash) for each part of a compound; of other words for none. `lowered` is the word
// in lower case.
template <class OnPart>
void each_part(const unsigned char* word, const unsigned char* lowered, std::size_t length,
               WordKind kind, OnPart on_part) {
    std::size_t begin = 0;
    for (std::size_t at = 1; at <= length; ++at) {
        if (at < length ? !begins_part(word, at, length) : begin == 0)
            continue;
        on_part(hash_of(lowered + begin, at - begin, kind));
        begin = at;
    }
}

// The first bytes of a word as a number, little-endian; those from the length on are zero.
std::uint64_t bytes_of(const unsigned char* word, std::size_t length) {
    const auto value = bits::xxh64_steps::read<std::uint64_t>(word);
    return length >= sizeof value ? value : value & ((std::uint64_t{1} << 8 * length) - 1);
}

// What is known of an ASCII word of at most 16 bytes; null if it is not such a word. The pointer is
// valid until the next call.
KnownWord* known_word(const unsigned char* word, std::size_t length, WordKind kind,
                      BagScratch& scratch) {
    static_assert(text::kReadable >= kMostKnownBytes);
    if (length > kMostKnownBytes)
        return nullptr;
    const std::uint64_t first = bytes_of(word, length);
    const std::uint64_t second = length > 8 ? bytes_of(word + 8, length - 8) : 0;
    if (((first | second) & 0x8080808080808080u) != 0)
        return nullptr;
    if (scratch.known.size() >= kMostKnown) {
        scratch.known.clear();
        scratch.parts.clear();
        scratch.known_pieces.clear();
    }
    KnownWord& known = scratch.known[first + second * bits::xxh64_steps::kPrime1];
    if (known.first == first && known.second == second)
        return &known;
    if (known.first != 0)
        return nullptr;  // another word has the same hash
    const std::size_t size = lower_word(word, length, scratch);
    const unsigned char* const lowered = scratch.lowered.data();
    known.first = first;
    known.second = second;
    known.hash = hash_of(lowered, size, kind);
    known.parts = static_cast<std::uint32_t>(scratch.parts.size());
    each_part(word, lowered, length, kind,
              [&](std::uint64_t hash) { scratch.parts.push_back(hash); });
    known.part_count = static_cast<std::uint32_t>(scratch.parts.size()) - known.parts;
    known.pieces = static_cast<std::uint32_t>(scratch.known_pieces.size());
    each_word_piece(lowered, size, [&](std::size_t piece) {
        scratch.known_pieces.push_back(static_cast<std::uint16_t>(piece));
        return true;
    });
    known.piece_count = static_cast<std::uint32_t>(scratch.known_pieces.size()) - known.pieces;
    return &known;
}

// Counts a known word of the text.
void add_known(KnownWord& known, bool lead, BagScratch& scratch) {
    std::vector<std::uint64_t>& entries = scratch.entries;
    const std::uint64_t times = lead ? 2 : 1;
    for (std::size_t part = 0; part < known.part_count; ++part)
        entries.push_back(scratch.parts[known.parts + part] << kCountBits | 1);
    if (known.text == scratch.texts) {
        std::uint64_t& entry = entries[known.place];
        entry += std::min(times, kCountMask - (entry & kCountMask));
        return;
    }
    known.text = scratch.texts;
    known.place = static_cast<std::uint32_t>(entries.size());
    entries.push_back(known.hash << kCountBits | times);
    scratch.pieces.add({scratch.known_pieces.data() + known.pieces, known.piece_count},
                       kMostPieces);
}

// Counts the words of a text: its entries and pieces are in the scratch afterwards.
void read_words(std::string_view text, WordKind kind, BagScratch& scratch) {
    std::size_t words = 0, pairs = 0;
    bool alone = false;
    scratch.entries.clear();
    scratch.pieces.clear();
    ++scratch.texts;
    const auto count = [&](std::uint64_t hash, bool lead) {
        scratch.entries.push_back(hash << kCountBits | (lead ? 2 : 1));
    };
    const text::WordOptions as_written{.lowercase = false};
    text::each_word(text, as_written, scratch, [&](const unsigned char* word, std::size_t length) {
        const bool lead = words++ < kLead;
        if (kind != WordKind::trigram) {
            if (KnownWord* const known = known_word(word, length, kind, scratch)) {
                add_known(*known, lead, scratch);
                return;
            }
        }
        const std::size_t size = lower_word(word, length, scratch);
        const unsigned char* const lowered = scratch.lowered.data();
        if (is_alone(word, length)) {
            alone = true;
            count(hash_of(lowered, size, kind), lead);
            return;
        }
        if (kind == WordKind::trigram) {
            each_trigram(lowered, size, scratch,
                         [&](const unsigned char* piece, std::size_t bytes) {
                             count(hash_of(piece, bytes, kind), lead);
                         });
            return;
        }
        count(hash_of(lowered, size, kind), lead);
        add_pieces(lowered, size, scratch.pieces);
        if (length <= kLongestStemmed && is_ascii(word, length))
            each_part(word, lowered, length, kind, [&](std::uint64_t hash) { count(hash, false); });
    });
    if (!alone)
        return;
    each_run(text, scratch, [&] {
        for (const std::size_t characters : {2, 3}) {
            if (characters == 3 && kind != WordKind::trigram)
                continue;
            each_piece(scratch.run.data(), scratch.ends, characters,
                       [&](const unsigned char* piece, std::size_t bytes) {
                           count(hash_of(piece, bytes, kind), pairs++ < kLead);
                       });
        }
    });
}

// Sorts entries. Hashes are random, so most groups of equal first bits are small.
void sort_entries(std::vector<std::uint64_t>& entries, std::vector<std::uint64_t>& sorted) {
    if (entries.size() < kFewEntries) {
        std::sort(entries.begin(), entries.end());
        return;
    }
    const auto bucket = [](std::uint64_t entry) { return entry >> (64 - kBucketBits); };
    std::array<std::size_t, (std::size_t{1} << kBucketBits) + 1> ends{};
    for (const std::uint64_t entry : entries)
        ++ends[bucket(entry) + 1];
    for (std::size_t at = 1; at < ends.size(); ++at)
        ends[at] += ends[at - 1];
    sorted.resize(entries.size());
    for (const std::uint64_t entry : entries)
        sorted[ends[bucket(entry)]++] = entry;
    std::size_t begin = 0;
    for (std::size_t at = 0; at + 1 < ends.size(); begin = ends[at++])
        if (ends[at] - begin > 1)
            std::sort(sorted.data() + begin, sorted.data() + ends[at]);
    entries.swap(sorted);
}

// Appends the first part of a bag.
void append_pieces(const Pieces& pieces, std::vector<std::uint8_t>& bag) {
    const std::size_t header = bag.size();
    bag.resize(header + kHeaderBytes + 2 * pieces.most());
    std::uint8_t* const begin = bag.data() + header + kHeaderBytes;
    std::uint8_t* to = begin;
    std::size_t next = 0;  // the smallest that can follow
    pieces.each([&](std::size_t piece) {
        const std::size_t gap = piece - next;
        next = piece + 1;
        const std::size_t is_long = (127 - gap) >> 63;  // a branch would often be mispredicted
        to[0] = static_cast<std::uint8_t>(gap % 128 | is_long << 7);
        to[1] = static_cast<std::uint8_t>(gap / 128);
        to += 1 + is_long;
    });
    const auto size = static_cast<std::size_t>(to - begin);
    bag[header] = static_cast<std::uint8_t>(size);
    bag[header + 1] = static_cast<std::uint8_t>(size >> 8);
    bag.resize(header + kHeaderBytes + size);
}

}  // namespace

void Pieces::read(std::span<const std::uint8_t> bytes) {
    std::size_t next = 0;
    for (std::size_t at = 0; at < bytes.size();) {
        std::size_t gap = bytes[at++];
        if (gap >= 128 && at < bytes.size())
            gap = gap % 128 + 128 * std::size_t{bytes[at++]};
        add((next + gap) % (std::size_t{1} << kPieceBits));
        next += gap + 1;
    }
}

void append_bag(std::string_view text, WordKind kind, BagScratch& scratch,
                std::vector<std::uint8_t>& bag) {
    read_words(text, kind, scratch);
    std::vector<std::uint64_t>& entries = scratch.entries;
    if (entries.empty())
        return;
    sort_entries(entries, scratch.sorted);
    append_pieces(scratch.pieces, bag);
    std::size_t to = bag.size();
    bag.resize(to + kEntryBytes * entries.size());
    for (std::size_t begin = 0, end; begin < entries.size(); begin = end) {
        const std::uint64_t hash = entries[begin] >> kCountBits;
        std::uint64_t count = 0;
        for (end = begin; end < entries.size() && entries[end] >> kCountBits == hash; ++end)
            count += entries[end] & kCountMask;
        const std::uint64_t entry = hash << 8 | std::min(count, kMostCount);
        for (std::size_t byte = 0; byte < kEntryBytes; ++byte)
            bag[to++] = static_cast<std::uint8_t>(entry >> 8 * byte);
    }
    bag.resize(to);
}

Bags bags_of(const std::vector<std::string_view>& texts, WordKind kind, std::size_t threads,
             const bits::Checkpoint& checkpoint) {
    const std::size_t runs = (texts.size() + kTextsPerRun - 1) / kTextsPerRun;
    std::vector<Bags> parts(runs);
    std::vector<BagScratch> scratches(std::max<std::size_t>(1, std::min(threads, runs)));
    bits::share_out_runs(
        texts.size(), kTextsPerRun, scratches.size(), checkpoint,
        [&](std::size_t worker, std::size_t begin, std::size_t end) {
            Bags& part = parts[begin / kTextsPerRun];
            for (std::size_t text = begin; text < end; ++text) {
                bits::stop_if_canceled();  // texts may be long
                append_bag(texts[text], kind, scratches[worker], part.bytes);
                part.offsets.push_back(static_cast<std::int64_t>(part.bytes.size()));
            }
        });
    Bags all;
    std::size_t bytes = 0;
    for (const Bags& part : parts)
        bytes += part.bytes.size();
    all.bytes.reserve(bytes);
    all.offsets.reserve(texts.size() + 1);
    for (const Bags& part : parts) {
        const auto before = static_cast<std::int64_t>(all.bytes.size());
        for (std::size_t at = 1; at < part.offsets.size(); ++at)
            all.offsets.push_back(before + part.offsets[at]);
        all.bytes.insert(all.bytes.end(), part.bytes.begin(), part.bytes.end());
    }
    return all;
}

std::span<const std::uint8_t> pieces_of(std::span<const std::uint8_t> bag) {
    return bag.empty() ? bag : bag.subspan(kHeaderBytes, bag[0] | bag[1] << 8);
}

std::span<const std::uint8_t> entries_of(std::span<const std::uint8_t> bag) {
    return bag.empty() ? bag : bag.subspan(kHeaderBytes + pieces_of(bag).size());
}

bool is_bag(std::span<const std::uint8_t> bag) {
    if (bag.empty())
        return true;
    if (bag.size() < kHeaderBytes + kEntryBytes)
        return false;
    const std::size_t pieces = bag[0] | bag[1] << 8;
    if (pieces > 2 * kMostPieces || kHeaderBytes + pieces + kEntryBytes > bag.size())
        return false;
    const auto entries = entries_of(bag);
    if (entries.size() % kEntryBytes != 0)
        return false;
    std::uint64_t smallest = 0;  // the hash that an entry needs to have at least
    for (std::size_t at = 0; at < entries.size(); at += kEntryBytes) {
        const std::uint64_t entry = entry_at(entries.data() + at);
        if ((entry & kMostCount) == 0 || entry >> 8 < smallest)
            return false;
        smallest = (entry >> 8) + 1;
    }
    return true;
}

QueryWords query_words(std::string_view text, WordKind kind) {
    QueryWords found;
    BagScratch scratch;
    text::HashMap<text::Nothing> known;
    const auto add = [&](const unsigned char* word, std::size_t length) {
        const std::uint64_t hash = hash_of(word, length, kind);
        if (known.find(hash))
            return;
        known[hash];
        found.words.emplace_back(reinterpret_cast<const char*>(word), length);
        found.hashes.push_back(hash);
        scratch.pieces.clear();
        if (kind != WordKind::trigram && !is_alone(word, length))
            add_pieces(word, length, scratch.pieces);
        scratch.pieces.each(
            [&](std::size_t piece) { found.pieces.push_back(static_cast<std::uint16_t>(piece)); });
        found.offsets.push_back(static_cast<std::int64_t>(found.pieces.size()));
    };
    text::each_word(text, {}, scratch, [&](const unsigned char* word, std::size_t length) {
        if (is_alone(word, length))
            return;
        if (kind == WordKind::trigram)
            each_trigram(word, length, scratch, add);
        else
            add(word, length);
    });
    // The longest pieces of a run that documents have.
    each_run(text, scratch, [&] {
        const std::size_t most = kind == WordKind::trigram ? 3 : 2;
        each_piece(scratch.run.data(), scratch.ends, std::min(most, scratch.ends.size()), add);
    });
    return found;
}

}  // namespace lookalike::words
