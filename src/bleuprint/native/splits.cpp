// Applies the merge operations of byte-pair encoding to words: `Bpe.split` of
// dataset/subwords/bpe.py in C++, with the same results.
//
// A word starts as its characters, of which the last one ends in "</w>". The first merge operation
// that is possible joins its two symbols wherever they are neighbors; this is repeated until none
// is possible. Text is UTF-32, so that a character is one unit. Symbols have ids; the text of a
// symbol in a word is known by where it ends.
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

using Text = std::u32string;
using SymbolId = int32_t;
using Pair = uint64_t;
// The id of a character that occurs in no merge operation.
constexpr SymbolId unknown_symbol = -1;

struct Merge {
  int32_t rank;     // its place in the order of application
  SymbolId merged;  // the symbol that it gives
};

class Splitter {
 public:
  // Reads merge operations, one per line: two symbols, separated by a space. If an operation occurs
  // twice, the first line counts.
  Splitter(const char32_t* codes, int64_t size) {
    const Text text(codes, size);
    int32_t rank = 0;
    size_t line_start = 0;
    while (line_start < text.size()) {
      const size_t line_end = text.find(U'\n', line_start);
      const size_t space = text.find(U' ', line_start);
      const Text first = text.substr(line_start, space - line_start);
      const Text second = text.substr(space + 1, line_end - space - 1);
      const Pair pair = pair_of(symbol_id(first), symbol_id(second));
      merges_.emplace(pair, Merge{rank, symbol_id(first + second)});
      ++rank;
      line_start = line_end + 1;
    }
  }

  // Writes where each subword of a word ends, and returns the number of subwords. `ends` has room
  // for as many numbers as the word has characters.
  int64_t split(const char32_t* word, int64_t size, int32_t* ends) const {
    std::vector<SymbolId> symbols(size);
    for (int64_t i = 0; i < size; ++i) {
      const bool is_last = i + 1 == size;
      const auto entry = symbol_ids_.find(Text(1, word[i]) + (is_last ? U"</w>" : U""));
      symbols[i] = entry == symbol_ids_.end() ? unknown_symbol : entry->second;
      ends[i] = int32_t(i + 1);
    }
    while (const Merge* merge = first_possible_merge(symbols)) apply(*merge, symbols, ends);
    return int64_t(symbols.size());
  }

 private:
  static Pair pair_of(SymbolId first, SymbolId second) {
    return Pair(uint32_t(first)) << 32 | uint32_t(second);
  }

  // Returns the id of a symbol; a new symbol gets the next id.
  SymbolId symbol_id(const Text& symbol) {
    const SymbolId next_id = SymbolId(symbol_ids_.size());
    const auto [entry, is_new] = symbol_ids_.emplace(symbol, next_id);
    return is_new ? next_id : entry->second;
  }

  // Returns the merge operation of the symbols at `i` and `i + 1`; null if there is none.
  const Merge* merge_at(const std::vector<SymbolId>& symbols, size_t i) const {
    if (i + 1 >= symbols.size()) return nullptr;
    const auto entry = merges_.find(pair_of(symbols[i], symbols[i + 1]));
    return entry == merges_.end() ? nullptr : &entry->second;
  }

  // Returns the operation with the lowest rank that is possible in a word; null if there is none.
  const Merge* first_possible_merge(const std::vector<SymbolId>& symbols) const {
    const Merge* first = nullptr;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const Merge* merge = merge_at(symbols, i);
      if (merge != nullptr && (first == nullptr || merge->rank < first->rank)) first = merge;
    }
    return first;
  }

  // Applies a merge operation in a word, from left to right: of A A A it joins the first two. The
  // arrays are rewritten in place, since a symbol never moves to the right.
  void apply(const Merge& merge, std::vector<SymbolId>& symbols, int32_t* ends) const {
    size_t new_size = 0;
    size_t i = 0;
    while (i < symbols.size()) {
      const bool is_merged = merge_at(symbols, i) == &merge;
      const size_t last = is_merged ? i + 1 : i;  // of the old symbols that become one
      symbols[new_size] = is_merged ? merge.merged : symbols[i];
      ends[new_size] = ends[last];
      ++new_size;
      i = last + 1;
    }
    symbols.resize(new_size);
  }

  std::unordered_map<Text, SymbolId> symbol_ids_;
  std::unordered_map<Pair, Merge> merges_;
};

}  // namespace

extern "C" {
void* splitter_new(const char32_t* codes, int64_t size) { return new Splitter(codes, size); }
int64_t splitter_split(void* splitter, const char32_t* word, int64_t size, int32_t* ends) {
  return static_cast<const Splitter*>(splitter)->split(word, size, ends);
}
void splitter_delete(void* splitter) { delete static_cast<Splitter*>(splitter); }
}
