// What one core can do at most in wasm, as loops of the kind that the kernels consist of.
// Compiled twice: with products and sums as two instructions, and with relaxed_madd.
#include <wasm_simd128.h>

#include <cstddef>

namespace {

v128_t multiply_add(v128_t a, v128_t b, v128_t sum) {
#ifdef __wasm_relaxed_simd__
  return wasm_f32x4_relaxed_madd(a, b, sum);
#else
  return wasm_f32x4_add(sum, wasm_f32x4_mul(a, b));
#endif
}

constexpr int kDepth = 256;             // both panels together: 12 KB, in L1
alignas(16) float rows[kDepth * 4];     // four values a step, each splatted
alignas(16) float columns[kDepth * 8];  // two vectors a step

}  // namespace

/// Ordinary numbers in both panels; the sums stay far from overflow.
extern "C" void prepare() {
  for (int n = 0; n < kDepth * 4; ++n) rows[n] = static_cast<float>(n * 37 % 17 - 8) / 8;
  for (int n = 0; n < kDepth * 8; ++n) columns[n] = static_cast<float>(n * 41 % 19 - 9) / 9;
}

/// The inner loop of a matrix product, 4 x 8: eight accumulators, six loads and eight multiply-adds a step.
/// @returns something that depends on all of it
extern "C" [[clang::noinline]] float matrix_product(int repeats) {
  v128_t sums[4][2] = {};
  for (int n = 0; n < repeats; ++n) {
    const float* a = rows;
    const float* b = columns;
#pragma clang loop unroll(disable)
    for (int step = 0; step < kDepth; ++step, a += 4, b += 8) {
      const v128_t b0 = wasm_v128_load(b);
      const v128_t b1 = wasm_v128_load(b + 4);
#pragma clang loop unroll(full)
      for (int r = 0; r < 4; ++r) {
        const v128_t value = wasm_v128_load32_splat(a + r);
        sums[r][0] = multiply_add(value, b0, sums[r][0]);
        sums[r][1] = multiply_add(value, b1, sums[r][1]);
      }
    }
  }
  v128_t sum = wasm_f32x4_const_splat(0);
  for (auto& row : sums) sum = wasm_f32x4_add(sum, wasm_f32x4_add(row[0], row[1]));
  return wasm_f32x4_extract_lane(sum, 0);
}

extern "C" int matrix_product_flops() { return kDepth * 4 * 8 * 2; }  // of one repeat

/// Reads `vectors` vectors, a multiple of eight, in two halves at once: as keys and values are read, and faster than
/// one run through all.
extern "C" [[clang::noinline]] int read(const v128_t* data, size_t vectors) {
  const v128_t* other = data + vectors / 2;
  v128_t any[4] = {};
#pragma clang loop unroll(disable)
  for (const v128_t* end = other; data < end; data += 4, other += 4) {
#pragma clang loop unroll(full)
    for (int n = 0; n < 4; ++n) {
      any[n] = wasm_v128_or(any[n], wasm_v128_or(wasm_v128_load(data + n), wasm_v128_load(other + n)));
    }
  }
  const v128_t all = wasm_v128_or(wasm_v128_or(any[0], any[1]), wasm_v128_or(any[2], any[3]));
  return wasm_i32x4_extract_lane(all, 0);
}
