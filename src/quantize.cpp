// Storing tokens in the quantised types, four values at a time; bit for bit what quantize.h does with one.
//   Shapes: x [width]. Cost: two reads, a division and a byte or half a byte written for each value.
#include "quantize.h"

#include "kernels.h"
#include "numbers.h"

namespace attention {

float largest_magnitude(const float* x, int32_t count) {
  v128_t most = wasm_f32x4_const_splat(0), other = most;
  for (int32_t c = 0; c < count; c += 4) {
    const v128_t value = wasm_v128_load(x + c);
    other = wasm_v128_or(other, wasm_f32x4_sub(value, value));  // 0 for what is finite
    most = wasm_f32x4_pmax(most, wasm_f32x4_abs(value));
  }
  return wasm_v128_any_true(other) ? std::numeric_limits<float>::quiet_NaN() : max_lanes(most);
}

namespace {

constexpr int32_t kChannels = 16;  // of a step

/// int8_number on four lanes.
inline v128_t int8_numbers(v128_t x, v128_t d) {
  const v128_t ratio = wasm_f32x4_abs(wasm_f32x4_div(x, d)), whole = wasm_f32x4_trunc(ratio);
  const v128_t up = wasm_f32x4_ge(wasm_f32x4_sub(ratio, whole), wasm_f32x4_const_splat(0.5f));
  const v128_t rounded = wasm_f32x4_add(whole, wasm_v128_and(up, wasm_f32x4_const_splat(1)));
  const v128_t most = wasm_f32x4_pmin(rounded, wasm_f32x4_const_splat(127));
  const v128_t number = wasm_v128_and(most, wasm_f32x4_le(ratio, wasm_f32x4_const_splat(128)));
  const v128_t negative = wasm_i32x4_shr(x, 31);  // all ones, so that (n ^ m) - m is -n
  const v128_t magnitude = wasm_i32x4_trunc_sat_f32x4(number);
  return wasm_i32x4_sub(wasm_v128_xor(magnitude, negative), negative);
}

/// int4_number on four lanes.
inline v128_t int4_numbers(v128_t x, v128_t d) {
  const v128_t shifted = wasm_f32x4_add(wasm_f32x4_div(x, d), wasm_f32x4_const_splat(8.5f));
  const v128_t inside = wasm_v128_and(wasm_f32x4_gt(shifted, wasm_f32x4_const_splat(0)),
                                      wasm_f32x4_lt(shifted, wasm_f32x4_const_splat(17)));
  const v128_t number = wasm_f32x4_pmin(wasm_f32x4_trunc(shifted), wasm_f32x4_const_splat(15));
  const v128_t none = wasm_v128_and(wasm_f32x4_eq(d, wasm_f32x4_const_splat(0)), wasm_f32x4_const_splat(8));
  return wasm_i32x4_trunc_sat_f32x4(select(inside, number, none));
}

template <v128_t (*numbers)(v128_t, v128_t)>
ATTENTION_NOINLINE v128_t sixteen(const float* x, v128_t d) {
  const v128_t low = wasm_i16x8_narrow_i32x4(numbers(wasm_v128_load(x), d), numbers(wasm_v128_load(x + 4), d));
  const v128_t high = wasm_i16x8_narrow_i32x4(numbers(wasm_v128_load(x + 8), d), numbers(wasm_v128_load(x + 12), d));
  return wasm_i8x16_narrow_i16x8(low, high);
}

void store_half(float d, uint8_t* to) {
  const uint16_t half = half_from_float(d);
  std::memcpy(to, &half, sizeof half);
}

void quantize_int8(const float* x, int32_t width, uint8_t* to, float* scale) {
  const float d = largest_magnitude(x, width) / 127;
  *scale = d;
  for (int32_t c = 0; c < width; c += kChannels) {
    const v128_t numbers = sixteen<int8_numbers>(x + c, wasm_f32x4_splat(d));
    wasm_v128_store(to + c, wasm_v128_xor(numbers, wasm_i16x8_splat(kOffset)));
  }
}

void quantize_q8_0(const float* x, uint8_t* to) {
  const float d = largest_magnitude(x, kBlockValues) / 127;
  store_half(d, to);
  for (int32_t c = 0; c < kBlockValues; c += kChannels) {
    wasm_v128_store(to + kScaleBytes + c, sixteen<int8_numbers>(x + c, wasm_f32x4_splat(d)));
  }
}

void quantize_q4_0(const float* x, uint8_t* to) {
  const float magnitude = largest_magnitude(x, kBlockValues);
  int32_t first = 0;  // with that magnitude: its sign decides
  while (first < kBlockValues - 1 && std::fabs(x[first]) != magnitude) ++first;
  const float d = std::isfinite(magnitude) ? x[first] / -8 : magnitude;
  store_half(d, to);
  const v128_t low = sixteen<int4_numbers>(x, wasm_f32x4_splat(d));
  const v128_t high = sixteen<int4_numbers>(x + 16, wasm_f32x4_splat(d));
  wasm_v128_store(to + kScaleBytes, wasm_v128_or(low, wasm_i8x16_shl(high, 4)));
}

}  // namespace

void quantize(Type type, const float* x, int32_t width, uint8_t* to, float* scale) {
  if (width % kBlockValues != 0) return quantize_token(type, x, width, to, scale);
  if (type == Type::kInt8) return quantize_int8(x, width, to, scale);
  for (int32_t c = 0; c < width; c += kBlockValues, to += block_bytes(type)) {
    type == Type::kQ8_0 ? quantize_q8_0(x + c, to) : quantize_q4_0(x + c, to);
  }
}

}  // namespace attention
