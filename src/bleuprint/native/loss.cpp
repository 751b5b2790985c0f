// The cross-entropy of rows of logits and its gradient, a row at a time while it is in cache: what
// training/loss.py does by torch in seven passes. Vectors of 16 are divided into the processor's.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif
#define INLINE inline __attribute__((always_inline))

namespace {

constexpr int64_t kLanes = 16;
typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef uint32_t Bits __attribute__((vector_size(4 * kLanes)));
typedef uint16_t Halves __attribute__((vector_size(2 * kLanes)));  // bfloat16

INLINE void load(const float* from, Floats& to) { std::memcpy(&to, from, sizeof to); }
INLINE void load(const uint16_t* from, Floats& to) {
  Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  to = (Floats)(__builtin_convertvector(halves, Bits) << 16);
}
INLINE void store(float* to, const Floats& from) { std::memcpy(to, &from, sizeof from); }
INLINE void store(uint16_t* to, const Floats& from) {  // to the nearest, of two the even one
  const Bits bits = (Bits)from;
  const Halves halves = __builtin_convertvector((bits + 0x7fff + (bits >> 16 & 1)) >> 16, Halves);
  std::memcpy(to, &halves, sizeof halves);
}

constexpr float kPolynomial[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};

// exp(x) of x <= 0, to 2 units in the last place: x is n log 2 + r, then Cephes' polynomial of r.
INLINE void exponential(Floats& x) {
  x = x < -87.0f ? Floats{} - 87.0f : x;
  const Floats shifted = x * 1.44269504f + 12582912.0f;  // 1.5 x 2^23: the last bits are n
  const Floats n = shifted - 12582912.0f, r = x - n * 0.693359375f + n * 2.12194440e-4f;
  Floats p{};
  for (const float each : kPolynomial) p = p * r + each;
  x = (p * r * r + r + 1.0f) * (Floats)(((Bits)shifted + 127) << 23);
}

// The loss of one row, which becomes its gradient; `row` has room for it in whole vectors. `q`: the
// probabilities of a token, of the label, and of token 0, padding.
template <class Logit>
INLINE double one(Logit* logits, int64_t label, int64_t columns, float* row, const double* q) {
  Floats x, most = Floats{} - 3e38f, sums{}, exps{};
  const int64_t full = columns / kLanes * kLanes, rest = columns - full;
  Logit last[kLanes] = {};
  std::memcpy(last, logits + full, rest * sizeof(Logit));
  for (int64_t i = 0; i < columns; i += kLanes) {
    load(i < full ? logits + i : last, x);
    sums += x;  // zeros after the last logit
    for (int64_t j = columns - i; j < kLanes; j++) x[j] = -3e38f;
    most = x > most ? x : most;
    store(row + i, x);
  }
  float greatest = most[0];
  for (int64_t j = 1; j < kLanes; j++) greatest = most[j] > greatest ? most[j] : greatest;
  double loss = greatest - (q[1] - q[0]) * row[label] - (q[2] - q[0]) * row[0], total = 0;
  for (int64_t i = 0; i < columns; i += kLanes) {
    load(row + i, x);
    exponential(x -= greatest);
    exps += x;
    store(row + i, x);
  }
  for (int64_t j = 0; j < kLanes; j++) loss -= q[0] * sums[j], total += exps[j];
  row[label] -= float((q[1] - q[0]) * total);
  row[0] -= float((q[2] - q[0]) * total);
  for (int64_t i = 0; i < columns; i += kLanes) {
    load(row + i, x);
    store(i < full ? logits + i : last, x * float(1 / total) - float(q[0]));
  }
  std::memcpy(logits + full, last, rest * sizeof(Logit));
  return loss + std::log(total);
}

FOR_EACH_PROCESSOR double part(void* logits, bool half, const int64_t* labels, int64_t rows,
                               int64_t columns, const double* q) {
  std::vector<float> row(columns + kLanes);
  double loss = 0;
  for (int64_t i = 0, at = 0; i < rows; i++, at += columns)
    loss += half ? one((uint16_t*)logits + at, labels[i], columns, row.data(), q)
                 : one((float*)logits + at, labels[i], columns, row.data(), q);
  return loss;
}

}  // namespace

// The summed loss of logits (rows, columns), float32 or bfloat16 (`half`); they become its gradient.
extern "C" double cross_entropy(void* logits, int64_t half, const int64_t* labels, int64_t rows,
                                int64_t columns, const double* q, int64_t threads) {
  std::vector<double> losses(threads);
  std::vector<std::thread> others;
  const auto run = [&](int64_t i) {
    const int64_t start = rows * i / threads, end = rows * (i + 1) / threads;
    char* first = (char*)logits + start * columns * (half ? 2 : 4);
    losses[i] = part(first, half, labels + start, end - start, columns, q);
  };
  for (int64_t i = 1; i < threads; i++) others.emplace_back(run, i);
  run(0);
  for (auto& each : others) each.join();
  double loss = 0;
  for (const double each : losses) loss += each;
  return loss;
}
