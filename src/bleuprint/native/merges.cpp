// Learning the merges of byte-pair encoding: bpe_learner.py in C++, with the same results. Symbols
// are numbered; numbers of equal strings are equal. UTF-8 sorts by bytes as by code points.
#include <algorithm>
#include <cstdint>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

using Symbol = uint32_t;
using Pair = uint64_t;
using Counts = std::unordered_map<Pair, int64_t>;

Pair join(Symbol first, Symbol second) { return Pair(first) << 32 | second; }

struct Word {
  std::vector<Symbol> symbols;
  int64_t count;
};

struct Entry {
  int64_t count;
  Pair pair;
};

class Learner {
 public:
  Learner(const char* text, const int64_t* ends, const int64_t* counts, int64_t size)
      : heap_(Later{this}) {
    int64_t start = 0;
    for (int64_t i = 0; i < size; start = ends[i++]) add(text + start, text + ends[i], counts[i]);
    all_ = counts_;
    threshold_ = greatest() / 10.0;
    fill_heap();
  }

  // The next merge, as in codes; null if no pair occurs twice.
  const char* next() {
    if (!best() && done_) restore();
    if (!best() || heap_.top().count < 2) return nullptr;
    const Pair pair = heap_.top().pair;
    const std::string &first = strings_[pair >> 32], &second = strings_[Symbol(pair)];
    line_ = first + " " + second;
    merge(pair, number(first + second));
    if (done_++ % 100 == 0) prune();
    return line_.c_str();
  }

 private:
  struct Later {
    const Learner* learner;
    bool operator()(const Entry& a, const Entry& b) const {
      if (a.count != b.count) return a.count < b.count;
      const auto& strings = learner->strings_;
      const int order = strings[a.pair >> 32].compare(strings[b.pair >> 32]);
      return order ? order < 0 : strings[Symbol(a.pair)] < strings[Symbol(b.pair)];
    }
  };

  Symbol number(const std::string& string) {
    const auto [place, added] = numbers_.emplace(string, Symbol(strings_.size()));
    if (added) strings_.push_back(string);
    return place->second;
  }

  void add(const char* start, const char* end, int64_t count) {
    Word word{{}, count};
    while (start < end) {
      const char* after = start + 1;
      while (after < end && (*after & 0xC0) == 0x80) ++after;  // the rest of the character
      word.symbols.push_back(number(std::string(start, after) + (after < end ? "" : "</w>")));
      start = after;
    }
    for (size_t i = 1; i < word.symbols.size(); ++i)
      change(join(word.symbols[i - 1], word.symbols[i]), count, 1, words_.size());
    words_.push_back(std::move(word));
  }

  void change(Pair pair, int64_t count, int times, size_t word) {
    counts_[pair] += count;
    places_[pair].push_back({Symbol(word), times});
  }

  // The words that have a pair, as far as subword-nmt's counts tell.
  std::vector<size_t> words_with(Pair pair) {
    auto changes = std::move(places_[pair]);
    places_.erase(pair);
    std::sort(changes.begin(), changes.end());
    std::vector<size_t> found;
    for (size_t i = 0; i < changes.size();) {
      const Symbol word = changes[i].first;
      int64_t times = 0;
      for (; i < changes.size() && changes[i].first == word; ++i) times += changes[i].second;
      if (times > 0) found.push_back(word);
    }
    return found;
  }

  // Whether the top of the heap is the most frequent pair, at least as frequent as the threshold.
  bool best() {
    while (!heap_.empty()) {
      const Entry top = heap_.top();
      const auto place = counts_.find(top.pair);
      const int64_t count = place == counts_.end() ? 0 : place->second;
      if (count == top.count) return true;
      heap_.pop();
      if (count >= threshold_ && count < top.count) heap_.push({count, top.pair});
    }
    return false;
  }

  void merge(Pair pair, Symbol merged) {
    const Symbol first = pair >> 32, second = Symbol(pair);
    std::vector<Pair> risen;
    for (const size_t index : words_with(pair)) {
      const std::vector<Symbol> old = words_[index].symbols;
      const int64_t count = words_[index].count;
      const size_t size = old.size();
      std::vector<Symbol>& word = words_[index].symbols;
      word.clear();
      for (size_t i = 0; i < size; ++i) {
        if (old[i] != first || i + 1 == size || old[i + 1] != second) {
          word.push_back(old[i]);
          continue;
        }
        if (i) change(join(old[i - 1], first), -count, -1, index);
        // of A B A B, the pair B A is counted with the second A B
        if (i + 2 < size && (old[i + 2] != first || i + 3 == size || old[i + 3] != second))
          change(join(second, old[i + 2]), -count, -1, index);
        word.push_back(merged);
        ++i;
      }
      for (size_t i = 0; i < word.size(); ++i) {
        if (word[i] != merged) continue;
        if (i) {
          risen.push_back(join(word[i - 1], merged));
          change(risen.back(), count, 1, index);
        }
        if (i + 1 == word.size() || word[i + 1] == merged) continue;  // counted with the next
        risen.push_back(join(merged, word[i + 1]));
        change(risen.back(), count, 1, index);
      }
    }
    counts_[pair] = 0;
    for (const Pair near : risen)
      if (const int64_t count = counts_[near]; count >= threshold_) heap_.push({count, near});
  }

  // Rare pairs are set aside; the count of one that occurs again starts from 0.
  void prune() {
    for (auto place = counts_.begin(); place != counts_.end();) {
      const auto [pair, count] = *place;
      if (count >= threshold_) {
        ++place;
        continue;
      }
      if (count < 0) all_[pair] += count;
      else all_[pair] = count;
      place = counts_.erase(place);
    }
  }

  void restore() {
    prune();
    counts_ = all_;
    threshold_ = greatest() * done_ / (done_ + 10000.0);
    prune();
    fill_heap();
  }

  double greatest() const {
    int64_t most = 0;
    for (const auto& [pair, count] : counts_) most = std::max(most, count);
    return double(most);
  }

  void fill_heap() {
    heap_ = Heap(Later{this});
    for (const auto& [pair, count] : counts_)
      if (count >= threshold_) heap_.push({count, pair});
  }

  using Heap = std::priority_queue<Entry, std::vector<Entry>, Later>;
  std::vector<std::string> strings_;
  std::unordered_map<std::string, Symbol> numbers_;
  std::vector<Word> words_;
  // the count of each pair; those of all, also the rare; changes of its count in each word
  Counts counts_, all_;
  std::unordered_map<Pair, std::vector<std::pair<Symbol, int>>> places_;
  Heap heap_;
  double threshold_ = 0;
  int64_t done_ = 0;
  std::string line_;
};

}  // namespace

extern "C" {
// `text`: words in UTF-8, one after the other, each up to its end.
void* merges_new(const char* text, const int64_t* ends, const int64_t* counts, int64_t size) {
  return new Learner(text, ends, counts, size);
}
const char* merges_next(void* learner) { return static_cast<Learner*>(learner)->next(); }
void merges_delete(void* learner) { delete static_cast<Learner*>(learner); }
}
