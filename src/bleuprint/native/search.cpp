// What a step of beam search computes besides products of matrices, each in one pass: arrays as in
// model/kv_cache.py and decoding/beam_search.py, contiguous in the last dimension.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

namespace {

typedef float Floats __attribute__((vector_size(32), aligned(4)));  // 8
constexpr int64_t kFloats = 8;

inline const Floats& floats(const float* from) { return *reinterpret_cast<const Floats*>(from); }

}  // namespace

extern "C" {

// softmax(query x key^T / sqrt(d_k)) x value of each hypothesis (N, H x d_v), over the entries of
// its sentence that `seen` marks: (N, E), or (R, E) if there are no new keys and values. Those are
// first stored as the last entries. Rows of query and of what is new are that many floats apart; keys
// and values have `room` entries in each row and head; `rows` (B,) are those of the sentences. d_k
// and d_v must be multiples of 8.
FOR_EACH_PROCESSOR void attend(const float* query, const float* new_keys, const float* new_values,
                               int64_t query_stride, int64_t key_stride, int64_t value_stride,
                               float* keys, float* values, int64_t room, const int64_t* rows,
                               const uint8_t* seen, int64_t sentences, int64_t width,
                               int64_t heads, int64_t d_k, int64_t d_v, int64_t entries,
                               float* result) {
  std::vector<int64_t> used(entries);
  std::vector<float> weights(entries);
  const float scale = 1 / std::sqrt(float(d_k));
  for (int64_t n = 0; n < sentences * width; ++n, query += query_stride - heads * d_k) {
    const int64_t row = rows[n / width], newest = entries - width + n % width;
    const uint8_t* mask = seen + (new_keys ? n : row) * entries;
    int64_t count = 0;
    for (int64_t e = 0; e < entries; ++e)
      if (mask[e]) used[count++] = e;
    for (int64_t head = 0; head < heads; ++head, query += d_k) {
      float* key = keys + (row * heads + head) * room * d_k;
      float* value = values + (row * heads + head) * room * d_v;
      if (new_keys) {
        std::copy_n(new_keys + n * key_stride + head * d_k, d_k, key + newest * d_k);
        std::copy_n(new_values + n * value_stride + head * d_v, d_v, value + newest * d_v);
      }
      float greatest = -INFINITY, sum = 0;
      for (int64_t i = 0; i < count; ++i) {
        Floats s = {};
        for (int64_t j = 0; j < d_k; j += kFloats)
          s += floats(query + j) * floats(key + used[i] * d_k + j);
        weights[i] = scale * (s[0] + s[4] + (s[1] + s[5]) + (s[2] + s[6] + (s[3] + s[7])));
        greatest = std::max(greatest, weights[i]);
      }
      for (int64_t i = 0; i < count; ++i) sum += weights[i] = std::exp(weights[i] - greatest);
      for (int64_t j = 0; j < d_v; j += kFloats, result += kFloats) {
        Floats mixed = {};
        for (int64_t i = 0; i < count; ++i) mixed += weights[i] * floats(value + used[i] * d_v + j);
        mixed /= sum;
        std::memcpy(result, &mixed, sizeof mixed);
      }
    }
  }
}

// The `most` greatest of logs (B, W x V) + scores (B, W), greatest first, and
// their places in W x V; place 0 with -inf where there are fewer.
FOR_EACH_PROCESSOR void greatest(const float* logs, const float* scores, int64_t sentences,
                                 int64_t width, int64_t units, int64_t most, float* values,
                                 int64_t* places) {
  std::fill(values, values + sentences * most, -INFINITY);
  std::fill(places, places + sentences * most, 0);
  for (int64_t n = 0; n < sentences * width; ++n, logs += units) {
    float* best = values + n / width * most;
    int64_t* place = places + n / width * most;
    for (int64_t start = 0; start < units; start += 64) {
      const int64_t end = std::min(start + 64, units);
      int found = 0;
      for (int64_t i = start; i < end; ++i) found |= !(logs[i] + scores[n] <= best[most - 1]);
      for (int64_t i = start; found && i < end; ++i) {
        const float total = logs[i] + scores[n];
        if (total <= best[most - 1]) continue;
        int64_t rank = most - 1;
        for (; rank && !(best[rank - 1] >= total); --rank) {
          best[rank] = best[rank - 1];
          place[rank] = place[rank - 1];
        }
        best[rank] = total;
        place[rank] = n % width * units + i;
      }
    }
  }
}
}
