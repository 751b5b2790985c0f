// Learns the merge operations of byte-pair encoding, the same ones as subword-nmt learns. It is
// called by dataset/bpe_learner.py.
//
// The algorithm: each word is a sequence of symbols, at first its characters, of which the last one
// ends in "</w>". In each step, the most frequent pair of neighboring symbols becomes one symbol in
// all words. subword-nmt looks at all pairs in each step; here a heap keeps the pairs by frequency.
//
// subword-nmt saves memory by setting rare pairs aside, which may change the counts of pairs that
// occur again later. The same pairs are set aside here, so that the merges are the same.
//
// Symbols have ids, and a pair of symbols is one 64-bit number. In UTF-8, strings compare by
// bytes as they compare by characters.
#include <algorithm>
#include <cstdint>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

using SymbolId = uint32_t;
using Pair = uint64_t;
// The position of a word in the list of all words. With 32 bits a `Change` takes 8 bytes.
using WordIndex = uint32_t;
using PairCounts = std::unordered_map<Pair, int64_t>;

// Pairs that occur less often are not merged.
constexpr int64_t min_count = 2;
// Rare pairs are set aside after each so many merges.
constexpr int64_t merges_between_prunings = 100;

Pair pair_of(SymbolId first, SymbolId second) { return Pair(first) << 32 | second; }
SymbolId first_of(Pair pair) { return SymbolId(pair >> 32); }
SymbolId second_of(Pair pair) { return SymbolId(pair); }

struct Word {
  std::vector<SymbolId> symbols;
  int64_t count;  // how often the word occurs in the text
};

// A pair with its count at the time when it was put into the heap.
struct HeapEntry {
  int64_t count;
  Pair pair;
};

// A change of the number of times that a pair occurs in a word.
struct Change {
  WordIndex word_index;
  int difference;
};

class Learner {
 public:
  // Reads `word_count` words from `text`: each word ends where the next one begins, at its number
  // in `ends`. `counts` says how often each word occurs.
  Learner(const char* text, const int64_t* ends, const int64_t* counts, int64_t word_count)
      : heap_(LessFrequent{this}) {
    int64_t start = 0;
    for (int64_t i = 0; i < word_count; ++i) {
      add_word(text + start, text + ends[i], counts[i]);
      start = ends[i];
    }
    all_counts_ = counts_;
    threshold_ = largest_count() / 10.0;
    fill_heap();
  }

  // Applies the next merge. Returns its two symbols, separated by a space, or null if no pair is
  // frequent enough. The text is valid until the next call.
  const char* next_merge() {
    if (!find_most_frequent() && merge_count_ > 0) restore_rare_pairs();
    if (!find_most_frequent() || heap_.top().count < min_count) return nullptr;
    const Pair pair = heap_.top().pair;
    const std::string& first = strings_[first_of(pair)];
    const std::string& second = strings_[second_of(pair)];
    line_ = first + " " + second;
    const std::string merged = first + second;
    apply_merge(pair, symbol_id(merged));
    if (merge_count_ % merges_between_prunings == 0) set_rare_pairs_aside();
    ++merge_count_;
    return line_.c_str();
  }

 private:
  // Orders the heap by count. Of pairs with equal counts, the one with the greater symbols wins.
  struct LessFrequent {
    const Learner* learner;
    bool operator()(const HeapEntry& a, const HeapEntry& b) const {
      if (a.count != b.count) return a.count < b.count;
      const auto& strings = learner->strings_;
      const int order = strings[first_of(a.pair)].compare(strings[first_of(b.pair)]);
      if (order != 0) return order < 0;
      return strings[second_of(a.pair)] < strings[second_of(b.pair)];
    }
  };
  using Heap = std::priority_queue<HeapEntry, std::vector<HeapEntry>, LessFrequent>;

  // Returns the id of a symbol; a new symbol gets the next id.
  SymbolId symbol_id(const std::string& string) {
    const auto [entry, is_new] = symbol_ids_.emplace(string, SymbolId(strings_.size()));
    if (is_new) strings_.push_back(string);
    return entry->second;
  }

  // Adds a word, from `start` to before `end`, and counts its pairs.
  void add_word(const char* start, const char* end, int64_t count) {
    Word word{{}, count};
    while (start < end) {
      const char* next = start + 1;
      // Bytes 10xxxxxx continue a character of UTF-8.
      while (next < end && (*next & 0xC0) == 0x80) ++next;
      const bool is_last = next == end;
      const std::string character(start, next);
      word.symbols.push_back(symbol_id(is_last ? character + "</w>" : character));
      start = next;
    }
    for (size_t i = 1; i < word.symbols.size(); ++i) {
      const Pair pair = pair_of(word.symbols[i - 1], word.symbols[i]);
      change_count(pair, count, 1, WordIndex(words_.size()));
    }
    words_.push_back(std::move(word));
  }

  // Counts a pair that now occurs once more (`difference` 1) or once less (-1) in a word, which
  // changes its count in the text by `count`.
  void change_count(Pair pair, int64_t count, int difference, WordIndex word_index) {
    counts_[pair] += count;
    changes_[pair].push_back({word_index, difference});
  }

  // Returns the words in which a pair occurs, in ascending order, and forgets the pair's changes.
  std::vector<WordIndex> take_words_with(Pair pair) {
    std::vector<Change> changes = std::move(changes_[pair]);
    changes_.erase(pair);
    std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return a.word_index < b.word_index;
    });
    std::vector<WordIndex> words;
    size_t i = 0;
    while (i < changes.size()) {
      const WordIndex word_index = changes[i].word_index;
      int64_t occurrences = 0;
      while (i < changes.size() && changes[i].word_index == word_index) {
        occurrences += changes[i].difference;
        ++i;
      }
      if (occurrences > 0) words.push_back(word_index);
    }
    return words;
  }

  // Brings the most frequent pair to the top of the heap. Returns false if no pair is at least as
  // frequent as the threshold. Counts may have fallen since an entry was put into the heap: such an
  // entry is put in again with its count of now.
  bool find_most_frequent() {
    while (!heap_.empty()) {
      const HeapEntry top = heap_.top();
      const auto entry = counts_.find(top.pair);
      const int64_t count_now = entry == counts_.end() ? 0 : entry->second;
      if (count_now == top.count) return true;
      heap_.pop();
      // A pair whose count has risen has another entry with its count of now.
      if (count_now >= threshold_ && count_now < top.count) heap_.push({count_now, top.pair});
    }
    return false;
  }

  // Replaces a pair by the symbol `merged` in all words, and updates the counts of its neighbors.
  void apply_merge(Pair pair, SymbolId merged) {
    std::vector<Pair> new_pairs;
    for (const WordIndex word_index : take_words_with(pair)) {
      merge_in_word(pair, merged, word_index);
      count_new_pairs(merged, word_index, new_pairs);
    }
    counts_[pair] = 0;
    for (const Pair new_pair : new_pairs) {
      const int64_t count = counts_[new_pair];
      if (count >= threshold_) heap_.push({count, new_pair});
    }
  }

  // Replaces a pair in one word, from left to right, and takes the pairs that it formed with its
  // neighbors from the counts.
  void merge_in_word(Pair pair, SymbolId merged, WordIndex word_index) {
    const SymbolId first = first_of(pair);
    const SymbolId second = second_of(pair);
    std::vector<SymbolId>& symbols = words_[word_index].symbols;
    const int64_t count = words_[word_index].count;
    const std::vector<SymbolId> old = symbols;
    const auto is_pair_at = [&](size_t i) {
      return i + 1 < old.size() && old[i] == first && old[i + 1] == second;
    };
    symbols.clear();
    size_t i = 0;
    while (i < old.size()) {
      if (!is_pair_at(i)) {
        symbols.push_back(old[i]);
        ++i;
        continue;
      }
      if (i > 0) change_count(pair_of(old[i - 1], first), -count, -1, word_index);
      // In A B A B, the pair B A belongs to the second A B as its left neighbor.
      if (i + 2 < old.size() && !is_pair_at(i + 2))
        change_count(pair_of(second, old[i + 2]), -count, -1, word_index);
      symbols.push_back(merged);
      i += 2;
    }
  }

  // Counts the pairs that a merged symbol forms with its neighbors in one word, and appends them to
  // `new_pairs`.
  void count_new_pairs(SymbolId merged, WordIndex word_index, std::vector<Pair>& new_pairs) {
    const std::vector<SymbolId>& symbols = words_[word_index].symbols;
    const int64_t count = words_[word_index].count;
    for (size_t i = 0; i < symbols.size(); ++i) {
      if (symbols[i] != merged) continue;
      if (i > 0) {
        new_pairs.push_back(pair_of(symbols[i - 1], merged));
        change_count(new_pairs.back(), count, 1, word_index);
      }
      // A pair of two merged symbols is counted with the second one.
      if (i + 1 < symbols.size() && symbols[i + 1] != merged) {
        new_pairs.push_back(pair_of(merged, symbols[i + 1]));
        change_count(new_pairs.back(), count, 1, word_index);
      }
    }
  }

  // Moves pairs below the threshold from `counts_` to `all_counts_`. If such a pair occurs again,
  // its count starts from 0, as in subword-nmt; a negative count is added to the one set aside.
  void set_rare_pairs_aside() {
    auto entry = counts_.begin();
    while (entry != counts_.end()) {
      const auto [pair, count] = *entry;
      if (count >= threshold_) {
        ++entry;
        continue;
      }
      if (count < 0) all_counts_[pair] += count;
      else all_counts_[pair] = count;
      entry = counts_.erase(entry);
    }
  }

  // Brings back the pairs that were set aside, when no other pair is frequent enough, and lowers
  // the threshold. The formula is that of subword-nmt.
  void restore_rare_pairs() {
    set_rare_pairs_aside();
    counts_ = all_counts_;
    threshold_ = largest_count() * merge_count_ / (merge_count_ + 10000.0);
    set_rare_pairs_aside();
    fill_heap();
  }

  // Returns the count of the most frequent pair; 0 without pairs.
  double largest_count() const {
    int64_t largest = 0;
    for (const auto& [pair, count] : counts_) largest = std::max(largest, count);
    return double(largest);
  }

  // Builds the heap anew from all pairs that reach the threshold.
  void fill_heap() {
    heap_ = Heap(LessFrequent{this});
    for (const auto& [pair, count] : counts_)
      if (count >= threshold_) heap_.push({count, pair});
  }

  // The text of each symbol by its id, and the id by its text.
  std::vector<std::string> strings_;
  std::unordered_map<std::string, SymbolId> symbol_ids_;
  std::vector<Word> words_;
  // The counts of pairs, and those of all pairs, also of pairs that were set aside.
  PairCounts counts_;
  PairCounts all_counts_;
  // For each pair the changes of its occurrences in words; they tell which words contain it.
  std::unordered_map<Pair, std::vector<Change>> changes_;
  Heap heap_;
  // Pairs with a smaller count are set aside.
  double threshold_ = 0;
  int64_t merge_count_ = 0;
  // The text that `next_merge` returned last.
  std::string line_;
};

}  // namespace

extern "C" {
// `text`: the words in UTF-8, one after the other; `ends`: the offset after the end of each word.
void* merges_new(const char* text, const int64_t* ends, const int64_t* counts, int64_t size) {
  return new Learner(text, ends, counts, size);
}
const char* merges_next(void* learner) { return static_cast<Learner*>(learner)->next_merge(); }
void merges_delete(void* learner) { delete static_cast<Learner*>(learner); }
}
