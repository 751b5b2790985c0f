// Applying the merges of byte-pair encoding to a word: Bpe.split of bpe.py, with the same results.
// Text is UTF-32. A symbol is known by where it ends in the word, and by its number in the merges.
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

using Text = std::u32string;
using Symbols = std::vector<int32_t>;
struct Merge { int32_t rank, merged; };
class Splitter {
 public:
  // `codes`: a line for each merge, its two symbols separated by a space; of equal ones the first.
  Splitter(const char32_t* codes, int64_t size) {
    const Text text(codes, size);
    int32_t rank = 0;
    for (size_t start = 0, end; start < text.size(); start = end + 1) {
      end = text.find(U'\n', start);
      const size_t space = text.find(U' ', start);
      const Text first = text.substr(start, space - start);
      const Text second = text.substr(space + 1, end - space - 1);
      merges_.emplace(join(number(first), number(second)), Merge{rank++, number(first + second)});
    }
  }

  // Writes where each subword of a word ends, and returns their number; `ends` has room for `size`.
  int64_t split(const char32_t* word, int64_t size, int32_t* ends) const {
    Symbols symbols(size);
    for (int64_t i = 0; i < size; ++i) {
      const auto found = numbers_.find(Text(1, word[i]) + (i + 1 < size ? U"" : U"</w>"));
      symbols[i] = found == numbers_.end() ? -1 : found->second;
      ends[i] = int32_t(i + 1);
    }
    while (const Merge* best = find_best(symbols)) {
      int64_t after = 0;
      for (int64_t i = 0; i < size; ++i, ++after) {
        const bool both = i + 1 < size && merge_at(symbols, i) == best;  // the first of A A A
        symbols[after] = both ? best->merged : symbols[i];
        ends[after] = ends[i += both];
      }
      symbols.resize(size = after);
    }
    return size;
  }

 private:
  static uint64_t join(int32_t a, int32_t b) { return uint64_t(uint32_t(a)) << 32 | uint32_t(b); }

  int32_t number(const Text& symbol) {
    return numbers_.emplace(symbol, int32_t(numbers_.size())).first->second;
  }

  const Merge* merge_at(const Symbols& symbols, size_t i) const {
    const auto found = merges_.find(join(symbols[i], symbols[i + 1]));
    return found == merges_.end() ? nullptr : &found->second;
  }

  const Merge* find_best(const Symbols& symbols) const {
    const Merge* best = nullptr;
    for (size_t i = 0; i + 1 < symbols.size(); ++i)
      if (const Merge* merge = merge_at(symbols, i); merge && (!best || merge->rank < best->rank))
        best = merge;
    return best;
  }

  std::unordered_map<Text, int32_t> numbers_;
  std::unordered_map<uint64_t, Merge> merges_;
};

}  // namespace

extern "C" {
void* splitter_new(const char32_t* codes, int64_t size) { return new Splitter(codes, size); }
int64_t splitter_split(void* splitter, const char32_t* word, int64_t size, int32_t* ends) {
  return static_cast<const Splitter*>(splitter)->split(word, size, ends);
}
void splitter_delete(void* splitter) { delete static_cast<Splitter*>(splitter); }
}
