// exp and tanh on four lanes.
#pragma once

#include "simd.h"

namespace attention {

/// e^x for x <= 88. Relative error below 1.2e-7 + 6e-8 |x| (tests/host measures it): x log2(e) is rounded once, as a
/// whole, which weights below e^x don't notice. 0 from x = -88 down, exactly, so also for -inf. NaN stays NaN.
///
/// e^x = 2^n 2^f with n = round(x log2 e), |f| <= 1/2. Adding 1.5 * 2^23 rounds to an integer and leaves it in the low
/// bits, ready to be shifted into the exponent; the polynomial is the minimax one for 2^f with constant term 1.
inline v128_t exp_f32x4(v128_t x) {
  const v128_t round = wasm_f32x4_const_splat(0x1.8p23f);
  // -127 gives an exponent field of 0 and so the value 0. pmax keeps a NaN in its first operand.
  const v128_t y =
      wasm_f32x4_pmax(wasm_f32x4_mul(x, wasm_f32x4_const_splat(0x1.715476p0f)), wasm_f32x4_const_splat(-127));
  const v128_t rounded = wasm_f32x4_add(y, round);
  const v128_t f = wasm_f32x4_sub(y, wasm_f32x4_sub(rounded, round));
  v128_t p = wasm_f32x4_const_splat(0x1.5bda58p-10f);
  p = madd(p, f, wasm_f32x4_const_splat(0x1.3ce8aep-7f));
  p = madd(p, f, wasm_f32x4_const_splat(0x1.c6b6d8p-5f));
  p = madd(p, f, wasm_f32x4_const_splat(0x1.ebf9c2p-3f));
  p = madd(p, f, wasm_f32x4_const_splat(0x1.62e42ap-1f));
  p = madd(p, f, wasm_f32x4_const_splat(1));
  const v128_t power = wasm_i32x4_add(wasm_i32x4_shl(rounded, 23), wasm_i32x4_const_splat(0x3f800000));
  return wasm_f32x4_mul(p, power);  // a product, not a sum of exponents: it keeps NaN whatever its payload
}

/// tanh x, error below 3 units in the last place (tests/host measures it). Saturates to +-1; NaN stays NaN.
/// |x| < 5/8: odd polynomial; beyond: 1 - 2 / (e^(2|x|) + 1).
inline v128_t tanh_f32x4(v128_t x) {
  const v128_t sign = wasm_v128_and(x, wasm_i32x4_const_splat(INT32_MIN));
  const v128_t size = wasm_f32x4_abs(x), square = wasm_f32x4_mul(x, x);
  v128_t p = wasm_f32x4_const_splat(-0x1.75e1d4p-8f);
  p = madd(p, square, wasm_f32x4_const_splat(0x1.52269cp-6f));
  p = madd(p, square, wasm_f32x4_const_splat(-0x1.b83c5ap-5f));
  p = madd(p, square, wasm_f32x4_const_splat(0x1.110726p-3f));
  p = madd(p, square, wasm_f32x4_const_splat(-0x1.555532p-2f));
  const v128_t near = madd(wasm_f32x4_mul(p, square), x, x);
  const v128_t one = wasm_f32x4_const_splat(1), two = wasm_f32x4_const_splat(2);
  // Beyond 10 tanh is 1 in float32; the bound keeps exp in its range. pmin keeps a NaN in its first operand.
  const v128_t e = exp_f32x4(wasm_f32x4_mul(two, wasm_f32x4_pmin(size, wasm_f32x4_const_splat(10))));
  const v128_t far = wasm_f32x4_sub(one, wasm_f32x4_div(two, wasm_f32x4_add(e, one)));
  return select(wasm_f32x4_lt(size, wasm_f32x4_const_splat(0.625f)), near, wasm_v128_or(far, sign));
}

}  // namespace attention
