// Normalisations of rows and activation functions.
//
//   RMS: x / sqrt(mean x^2 + e) w;  layer: (x - mean) / sqrt(var + e) w + b;  softmax: e^(x - max) / sum
//
// Shapes: x, out [rows, width], or [count]. Cost: two or three passes over a row that stands in the cache. Errors
// against float64, measured by tests/host: norms below 4e-7 of the largest |x w| / sqrt(..) + |b| of the row, softmax
// below 4e-7 of its largest value, activations below 4e-7 max(1, |x|).
#include <algorithm>
#include <cmath>

#include "attention.h"
#include "math.h"
#include "parallel.h"

namespace attention {

namespace {

/// Sum over a row of f(four lanes), the tail with the lanes behind it left out.
template <typename F>
float sum_row(const float* x, int32_t width, F f) {
  v128_t sum = wasm_f32x4_const_splat(0), second = sum;
  int32_t c = 0;
  for (; c + 8 <= width; c += 8) {
    sum = wasm_f32x4_add(sum, f(wasm_v128_load(x + c)));
    second = wasm_f32x4_add(second, f(wasm_v128_load(x + c + 4)));
  }
  float tail = 0;
  for (; c < width; c += 4) {
    float lanes[4];
    wasm_v128_store(lanes, f(load_lanes(x + c, width - c)));
    for (int32_t i = 0; i < std::min(4, width - c); ++i) tail += lanes[i];
  }
  return sum_lanes(wasm_f32x4_add(sum, second)) + tail;
}

float max_row(const float* x, int32_t width) {
  float max = -INFINITY;
  int32_t c = 0;
  if (width >= 4) {
    v128_t most = wasm_v128_load(x);
    for (c = 4; c + 4 <= width; c += 4) most = wasm_f32x4_pmax(most, wasm_v128_load(x + c));
    max = max_lanes(most);
  }
  for (; c < width; ++c) max = x[c] > max ? x[c] : max;
  return max;
}

void softmax_row(const float* x, int32_t width, float* out) {
  const float max = max_row(x, width);
  const v128_t shift = wasm_f32x4_splat(max == -INFINITY ? 0 : max);  // a row of -inf is empty
  const auto weigh = [shift](v128_t lanes) { return exp_exact_f32x4(wasm_f32x4_sub(lanes, shift)); };
  const float sum = sum_row(x, width, weigh);
  const v128_t factor = wasm_f32x4_splat(sum == 0 ? 0 : 1 / sum);
  for (int32_t c = 0; c < width; c += 4) {
    store_lanes(out + c, wasm_f32x4_mul(weigh(load_lanes(x + c, width - c)), factor), width - c);
  }
}

/// `rest` is what rounding left out of the mean: it counts where the mean is large beside the differences from it.
void scale_row(const Norm& call, const float* x, float mean, float rest, float* out) {
  const v128_t shift = wasm_f32x4_splat(mean), second = wasm_f32x4_splat(rest);
  const auto centre = [shift, second](v128_t lanes) { return wasm_f32x4_sub(wasm_f32x4_sub(lanes, shift), second); };
  const float square = sum_row(x, call.width, [centre](v128_t lanes) {
    const v128_t centred = centre(lanes);
    return wasm_f32x4_mul(centred, centred);
  });
  const v128_t factor = wasm_f32x4_splat(1 / std::sqrt(square / static_cast<float>(call.width) + call.epsilon));
  for (int32_t c = 0; c < call.width; c += 4) {
    const int32_t count = call.width - c;
    v128_t y = wasm_f32x4_mul(centre(load_lanes(x + c, count)), factor);
    if (call.weight) y = wasm_f32x4_mul(y, load_lanes(call.weight + c, count));
    if (call.bias) y = wasm_f32x4_add(y, load_lanes(call.bias + c, count));
    store_lanes(out + c, y, count);
  }
}

void run_row(const void* context, int32_t row, int32_t) {
  const Norm& call = *static_cast<const Norm*>(context);
  const float* x = call.x + static_cast<ptrdiff_t>(row) * call.width;
  float* out = call.out + static_cast<ptrdiff_t>(row) * call.width;
  if (call.kind == NormKind::kSoftmax) {
    softmax_row(x, call.width, out);
  } else if (call.kind == NormKind::kRms) {
    scale_row(call, x, 0, 0, out);
  } else {
    const auto width = static_cast<float>(call.width);
    const float mean = sum_row(x, call.width, [](v128_t lanes) { return lanes; }) / width;
    const v128_t shift = wasm_f32x4_splat(mean);
    const float rest = sum_row(x, call.width, [shift](v128_t lanes) { return wasm_f32x4_sub(lanes, shift); }) / width;
    scale_row(call, x, mean, rest, out);
  }
}

v128_t activate(ActivationKind kind, v128_t x) {
  const v128_t one = wasm_f32x4_const_splat(1), half = wasm_f32x4_mul(x, wasm_f32x4_const_splat(0.5f));
  switch (kind) {
    case ActivationKind::kSilu:
      return wasm_f32x4_div(x, wasm_f32x4_add(one, exp_exact_f32x4(wasm_f32x4_neg(x))));
    case ActivationKind::kGelu:
      return wasm_f32x4_mul(half,
                            wasm_f32x4_add(one, erf_f32x4(wasm_f32x4_mul(x, wasm_f32x4_const_splat(0x1.6a09e6p-1f)))));
    default: {
      const v128_t cube = wasm_f32x4_mul(wasm_f32x4_mul(x, x), x);
      const v128_t inner = wasm_f32x4_add(x, wasm_f32x4_mul(cube, wasm_f32x4_const_splat(0.044715f)));
      const v128_t tanh = tanh_f32x4(wasm_f32x4_mul(inner, wasm_f32x4_const_splat(0x1.988454p-1f)));
      return wasm_f32x4_mul(half, wasm_f32x4_add(one, tanh));
    }
  }
}

constexpr int32_t kValuesAtOnce = 4096;

void run_values(const void* context, int32_t item, int32_t) {
  const Activation& call = *static_cast<const Activation*>(context);
  const int32_t end = std::min(call.count, (item + 1) * kValuesAtOnce);
  for (int32_t i = item * kValuesAtOnce; i < end; i += 4) {
    v128_t y = activate(call.kind, load_lanes(call.x + i, end - i));
    if (call.gate) y = wasm_f32x4_mul(y, load_lanes(call.gate + i, end - i));
    store_lanes(call.out + i, y, end - i);
  }
}

}  // namespace

void norm(const Norm& call) { parallel_for(call.rows, 8.0 * call.rows * call.width, &call, run_row); }

void activation(const Activation& call) {
  parallel_for((call.count + kValuesAtOnce - 1) / kValuesAtOnce, 16.0 * call.count, &call, run_values);
}

}  // namespace attention
