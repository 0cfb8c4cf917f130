// exp, tanh and erf on four lanes. The errors stated are what tests/host measures, over every float32 of the range and
// with madd rounding once or twice.
#pragma once

#include <cmath>

#include "simd.h"

namespace attention {

// Adding this to |y| < 2^22 rounds it to an integer, which then stands in the low bits, ready for the exponent.
constexpr float kRound = 0x1.8p23f;

constexpr float kExpTerms[] = {0x1.5bda58p-10f, 0x1.3ce8aep-7f, 0x1.c6b6d8p-5f, 0x1.ebf9c2p-3f};  // p5 to p2

/// The constants of e^x, to be made before a loop.
struct Exponential {
  v128_t log2e = hold(0x1.715476p0f);
  v128_t lowest = hold(-127);
  v128_t round = hold(kRound);
  v128_t p5 = hold(kExpTerms[0]);
  v128_t p4 = hold(kExpTerms[1]);
  v128_t p3 = hold(kExpTerms[2]);
  v128_t p2 = hold(kExpTerms[3]);
  v128_t p1 = hold(0x1.62e42ap-1f);
  v128_t one = hold(1);

  /// For loops that have no registers for all of the constants: these are read again each time.
  void read_terms() {
    const float* terms = read_anew(kExpTerms);
    p5 = load_splat(terms);
    p4 = load_splat(terms + 1);
    p3 = load_splat(terms + 2);
    p2 = load_splat(terms + 3);
  }

  /// 2^f for |f| <= 1/2, relative error below 2.1e-7: the minimax polynomial with constant term 1, itself 9.4e-8.
  v128_t fraction(v128_t f) const {
    // In pairs of terms: Horner's rule waits for five products in a row, this for three.
    const v128_t square = wasm_f32x4_mul(f, f);
    const v128_t high = madd(madd(p5, f, p4), square, madd(p3, f, p2));
    return madd(high, square, madd(p1, f, one));
  }

  /// p 2^n, with n in the low bits of `rounded`. A product, not a sum of exponents: it keeps NaN whatever its payload.
  v128_t times_power(v128_t p, v128_t rounded) const {
    return wasm_f32x4_mul(p, wasm_i32x4_add(wasm_i32x4_shl(rounded, 23), one));  // 1.0f is an exponent field of 127
  }

  /// e^x for x <= 88, for weights: relative error below 2e-7 + 7.3e-8 |x|, because x log2(e) is rounded once, as a
  /// whole; beside weights of 1 that is nothing. 0 from x = -87.69 down, exactly, so for -inf. NaN stays.
  v128_t operator()(v128_t x) const {
    // -127 gives an exponent field of 0 and so the value 0. pmax keeps a NaN in its first operand.
    const v128_t y = wasm_f32x4_pmax(wasm_f32x4_mul(x, log2e), lowest);
    const v128_t rounded = wasm_f32x4_add(y, round);
    return times_power(fraction(wasm_f32x4_sub(y, wasm_f32x4_sub(rounded, round))), rounded);
  }
};

inline v128_t exp_f32x4(v128_t x) { return Exponential()(x); }

/// e^x, relative error below 2.4e-7, for functions whose value is e^x itself. 0 from x = -87.5 down, infinity from
/// x = 88.37 up; NaN stays. x - n ln 2 is formed in two steps, the first of them exact.
inline v128_t exp_exact_f32x4(v128_t x) {
  const Exponential exponential;
  const v128_t round = exponential.round, log2e = exponential.log2e;
  const v128_t low = wasm_f32x4_pmax(x, wasm_f32x4_const_splat(-87.5f));
  const v128_t inside = wasm_f32x4_pmin(low, wasm_f32x4_const_splat(88.37f));
  const v128_t rounded = wasm_f32x4_add(wasm_f32x4_mul(inside, log2e), round);
  const v128_t n = wasm_f32x4_sub(rounded, round);
  const v128_t high = wasm_f32x4_sub(inside, wasm_f32x4_mul(n, wasm_f32x4_const_splat(0x1.62e4p-1f)));
  const v128_t r = wasm_f32x4_sub(high, wasm_f32x4_mul(n, wasm_f32x4_const_splat(0x1.7f7d1cp-20f)));
  const v128_t value = exponential.times_power(exponential.fraction(wasm_f32x4_mul(r, log2e)), rounded);
  const v128_t tiny = wasm_f32x4_le(x, wasm_f32x4_const_splat(-87.5f));
  const v128_t huge = wasm_f32x4_ge(x, wasm_f32x4_const_splat(88.37f));
  return select(huge, wasm_f32x4_const_splat(INFINITY), wasm_v128_andnot(value, tiny));
}

/// The error function, relative error below 4.2e-7: x P(x^2) / Q(x^2), 1 beyond 3.95. NaN stays.
inline v128_t erf_f32x4(v128_t x) {
  const v128_t bound = wasm_f32x4_const_splat(3.95f);
  const v128_t inside = wasm_f32x4_pmin(wasm_f32x4_pmax(x, wasm_f32x4_neg(bound)), bound);
  const v128_t t = wasm_f32x4_mul(inside, inside);
  v128_t p = wasm_f32x4_const_splat(-0x1.bd8c98p-27f);
  p = madd(p, t, wasm_f32x4_const_splat(0x1.376a8ep-18f));
  p = madd(p, t, wasm_f32x4_const_splat(0x1.8c4bdep-12f));
  p = madd(p, t, wasm_f32x4_const_splat(0x1.f7c1dp-9f));
  p = madd(p, t, wasm_f32x4_const_splat(0x1.bc9e68p-5f));
  p = madd(p, t, wasm_f32x4_const_splat(0x1.7b39c4p-3f));
  p = madd(p, t, wasm_f32x4_const_splat(0x1.20dd76p0f));
  v128_t q = wasm_f32x4_const_splat(0x1.06f3dap-14f);
  q = madd(q, t, wasm_f32x4_const_splat(0x1.55da1ap-10f));
  q = madd(q, t, wasm_f32x4_const_splat(0x1.fa0f2cp-7f));
  q = madd(q, t, wasm_f32x4_const_splat(0x1.d2943ep-4f));
  q = madd(q, t, wasm_f32x4_const_splat(0x1.fd5f96p-2f));
  q = madd(q, t, wasm_f32x4_const_splat(1));
  const v128_t value = wasm_f32x4_div(wasm_f32x4_mul(inside, p), q);
  const v128_t one = wasm_f32x4_const_splat(1);
  return wasm_f32x4_pmin(wasm_f32x4_pmax(value, wasm_f32x4_neg(one)), one);
}

/// tanh x, error below 2.1 units in the last place. Saturates to +-1; NaN stays NaN.
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
