#include "words/bags.hpp"

#include <algorithm>

#include "bits/hash.hpp"
#include "bits/operation.hpp"
#include "text/features.hpp"
#include "text/unicode.hpp"
#include "words/porter.hpp"

namespace lookalike::words {

namespace {

constexpr std::uint64_t kHashMask = (std::uint64_t{1} << 40) - 1;
constexpr std::size_t kLongestStemmed = 64;  // English words are shorter
constexpr std::size_t kMostStems = 1 << 16;
constexpr std::size_t kTextsPerRun = 64;

std::uint64_t hash_of_stem(const unsigned char* word, std::size_t length) {
    char letters[kLongestStemmed];
    std::copy_n(word, length, letters);
    return bits::xxh64(letters, stem(letters, length));
}

std::uint64_t hash_of(const unsigned char* word, std::size_t length, WordKind kind,
                      BagScratch& scratch) {
    const std::uint64_t own = bits::xxh64(word, length);
    const auto is_letter = [](unsigned char byte) { return byte >= 'a' && byte <= 'z'; };
    if (kind != WordKind::porter || length > kLongestStemmed ||
        !std::all_of(word, word + length, is_letter))
        return own & kHashMask;
    if (const std::uint64_t* known = scratch.stems.find(own))
        return *known;
    if (scratch.stems.size() >= kMostStems)
        scratch.stems.clear();
    return scratch.stems[own] = hash_of_stem(word, length) & kHashMask;
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

// Adds the pieces of a word, until there are `most`. A character has 21 bits.
void add_pieces(const unsigned char* word, std::size_t length, std::size_t most, Pieces& pieces) {
    constexpr std::uint64_t kThree = (std::uint64_t{1} << 63) - 1;
    constexpr std::uint64_t kOne = 0x9E3779B185EBCA87u, kTwo = 0xC2B2AE3D27D4EB4Fu;
    std::uint64_t three = ' ';  // the last characters
    std::size_t seen = 1;
    const auto add = [&](std::uint64_t next) {
        if (++seen >= 4)
            pieces.add((three * kOne + next) * kTwo >> (64 - kPieceBits));
        three = (three << 21 | next) & kThree;
    };
    for (std::size_t at = 0; at < length && pieces.count() < most;) {
        if (word[at] < 0x80) {
            add(word[at++]);
            continue;
        }
        const text::Decoded decoded = text::decode(word + at, word + length);
        at += decoded.length;
        add(decoded.code);
    }
    if (pieces.count() < most)
        add(' ');
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

// Calls on_hash(hash, lead) for each word of a document, once for each time that it counts. Pieces
// of words are in the scratch afterwards.
template <class OnHash>
void each_hash(std::string_view text, WordKind kind, BagScratch& scratch, OnHash on_hash) {
    std::size_t words = 0, pairs = 0;
    bool alone = false;
    scratch.pieces.clear();
    const text::WordOptions as_written{.lowercase = false};
    text::each_word(text, as_written, scratch, [&](const unsigned char* word, std::size_t length) {
        const bool lead = words++ < kLead;
        const std::size_t size = lower_word(word, length, scratch);
        const unsigned char* const lowered = scratch.lowered.data();
        if (is_alone(word, length)) {
            alone = true;
            on_hash(hash_of(lowered, size, kind, scratch), lead);
            return;
        }
        if (kind == WordKind::trigram) {
            each_trigram(lowered, size, scratch,
                         [&](const unsigned char* piece, std::size_t bytes) {
                             on_hash(hash_of(piece, bytes, kind, scratch), lead);
                         });
            return;
        }
        on_hash(hash_of(lowered, size, kind, scratch), lead);
        add_pieces(lowered, size, kMostPieces, scratch.pieces);
        if (length > kLongestStemmed || !is_ascii(word, length))
            return;
        std::size_t begin = 0;
        for (std::size_t at = 1; at <= length; ++at) {
            if (at < length ? !begins_part(word, at, length) : begin == 0)
                continue;
            on_hash(hash_of(lowered + begin, at - begin, kind, scratch), false);
            begin = at;
        }
    });
    if (!alone)
        return;
    each_run(text, scratch, [&] {
        for (const std::size_t count : {2, 3}) {
            if (count == 3 && kind != WordKind::trigram)
                continue;
            each_piece(scratch.run.data(), scratch.ends, count,
                       [&](const unsigned char* piece, std::size_t bytes) {
                           on_hash(hash_of(piece, bytes, kind, scratch), pairs++ < kLead);
                       });
        }
    });
}

// Appends the first part of a bag.
void append_pieces(const Pieces& pieces, std::vector<std::uint8_t>& bag) {
    const std::size_t header = bag.size();
    bag.resize(header + kHeaderBytes);
    std::size_t next = 0;  // the smallest that can follow
    pieces.each([&](std::size_t piece) {
        const std::size_t gap = piece - next;
        next = piece + 1;
        bag.push_back(static_cast<std::uint8_t>(gap < 128 ? gap : 128 | gap % 128));
        if (gap >= 128)
            bag.push_back(static_cast<std::uint8_t>(gap / 128));
    });
    const std::size_t size = bag.size() - header - kHeaderBytes;
    bag[header] = static_cast<std::uint8_t>(size);
    bag[header + 1] = static_cast<std::uint8_t>(size >> 8);
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
    std::vector<std::uint64_t>& hashes = scratch.hashes;
    hashes.clear();
    each_hash(text, kind, scratch, [&](std::uint64_t hash, bool lead) {
        hashes.insert(hashes.end(), lead ? 2 : 1, hash);
    });
    if (hashes.empty())
        return;
    std::sort(hashes.begin(), hashes.end());
    append_pieces(scratch.pieces, bag);
    for (std::size_t begin = 0, end; begin < hashes.size(); begin = end) {
        for (end = begin + 1; end < hashes.size() && hashes[end] == hashes[begin];)
            ++end;
        const std::uint64_t entry =
            hashes[begin] << 8 | std::min<std::uint64_t>(end - begin, kMostCount);
        for (std::size_t byte = 0; byte < kEntryBytes; ++byte)
            bag.push_back(static_cast<std::uint8_t>(entry >> 8 * byte));
    }
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
        const std::uint64_t hash = hash_of(word, length, kind, scratch);
        if (known.find(hash))
            return;
        known[hash];
        found.words.emplace_back(reinterpret_cast<const char*>(word), length);
        found.hashes.push_back(hash);
        scratch.pieces.clear();
        if (kind != WordKind::trigram && !is_alone(word, length))
            add_pieces(word, length, kMostPieces, scratch.pieces);
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
