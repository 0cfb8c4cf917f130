// Every kernel as plain passes without intrinsics: the definition of what the others compute, the yardstick of their
// accuracy, and the scalar build.
//
// Attention, one row at a time:
//   x_j = logit(i, j) for visible j;  m = max x;  l = sum e^(x_j - m);  out = sum e^(x_j - m) v_j / l
// Cost 2 B H Tq Tk (D + Dv) flops; working memory one row of logits, Tk floats, and Dv sums.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "attention.h"
#include "half.h"
#include "layout.h"
#include "quantize.h"
#include "visibility.h"

namespace attention::plain {

namespace {

struct Row {
  int32_t b, h, i;
  const float* q;
  float scale;  // of products with q
};

/// `q` takes the channels of the row.
Row make_row(const Attention& call, int32_t b, int32_t h, int32_t i, float* q) {
  const ptrdiff_t first = query_start(call, b, h) + static_cast<ptrdiff_t>(i) * call.q_token;
  const bool rounded = is_quantized(call.k_type);
  for (int32_t d = 0; d < call.D; ++d) q[d] = load_value(call.q, call.q_type, first + d) * (rounded ? call.scale : 1);
  if (rounded) round_to_16_bits(q, call.D);
  return {b, h, i, q, rounded ? 1 : call.scale};
}

/// The logit of one cell up to a stage, without regard to what is hidden.
float logit(const Attention& call, const Row& row, int32_t j, Stage stage) {
  const Tokens keys = key_tokens(call, row.b, kv_head(call, row.h));
  float dot = 0;
  for (int32_t d = 0; d < call.D; ++d) dot += row.q[d] * token_value(keys, keys.row(j), d);
  float x = dot * row.scale;
  if (stage >= Stage::kCapped && call.softcap > 0) x = call.softcap * std::tanh(x / call.softcap);
  if (stage >= Stage::kMasked && call.alibi) {
    const int64_t distance = row_position(call, row.b, row.i) + missing_tokens(call, row.b, j) - j;
    x -= call.alibi[row.h] * std::fabs(static_cast<float>(distance));
  }
  return x;
}

/// Every key that the row may see, before masks, lies in `span`; those between the prefix and the window are hidden.
struct Visible {
  KeyRange span;
  int32_t prefix, first;
  const Attention& call;
  ptrdiff_t mask;

  Visible(const Attention& attention, const Row& row)
      : prefix(visible_prefix(attention, row.b, row.i)),
        call(attention),
        mask(mask_row_start(attention, row.b, row.h, row.i)) {
    const KeyRange window = visible_keys(attention, row.b, row.i);
    first = window.empty() ? INT32_MAX : window.first;
    span = {prefix > 0 ? 0 : window.first, std::max(window.end, prefix)};
  }
  ptrdiff_t cell(int32_t j) const { return mask + static_cast<ptrdiff_t>(j) * call.mask_key; }
  bool operator()(int32_t j) const { return (j < prefix || j >= first) && !hidden(call, cell(j)); }
};

/// In eight sums, whose rounding stays below that of a long one.
template <typename F>
float sum_of(int32_t count, F f) {
  float sums[8] = {};
  for (int32_t c = 0; c < count; ++c) sums[c % 8] += f(c);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

/// The state of a row after all its keys: the greatest logit and the sum of e^(x - max), the sink in both.
struct RowState {
  float max, sum;
};

/// Fills x[j] for all keys of the row's span, -inf for hidden ones.
RowState row_logits(const Attention& call, const Row& row, const Visible& visible, float* x) {
  RowState state{-std::numeric_limits<float>::max(), 0};
  if (call.sinks && call.sinks[row.h] != -kInfinity) state = {call.sinks[row.h], 1};
  const float sink = state.max;
  for (int32_t j = visible.span.first; j < visible.span.end; ++j) {
    x[j] = visible(j) ? masked(call, visible.cell(j), logit(call, row, j, Stage::kMasked)) : -kInfinity;
    if (x[j] > state.max) state.max = x[j];
  }
  if (state.sum > 0) state.sum = std::exp(sink - state.max);
  const float* seen = x + visible.span.first;
  const float max = state.max;
  state.sum += sum_of(visible.span.end - visible.span.first, [=](int32_t j) { return std::exp(seen[j] - max); });
  return state;
}

void row_output(const Attention& call, const Row& row, const Visible& visible, const float* x, RowState state,
                float* sums) {
  std::fill(sums, sums + call.Dv, 0.0f);
  const Tokens values = value_tokens(call, row.b, kv_head(call, row.h));
  for (int32_t j = visible.span.first; j < visible.span.end; ++j) {
    if (!visible(j)) continue;
    const float weight = std::exp(x[j] - state.max);
    for (int32_t c = 0; c < call.Dv; ++c) sums[c] += weight * token_value(values, values.row(j), c);
  }
  const ptrdiff_t out = out_start(call, row.b, row.h) + static_cast<ptrdiff_t>(row.i) * call.out_token;
  const float norm = state.sum == 0 ? 0 : 1 / state.sum;
  for (int32_t c = 0; c < call.Dv; ++c) store_value(call.out, call.out_type, out + c, sums[c] * norm);
}

void attend_row(const Attention& call, const Row& row, float* x, float* sums) {
  const Visible visible(call, row);
  const RowState state = row_logits(call, row, visible, x);
  if (call.out) row_output(call, row, visible, x, state, sums);
  if (call.lse) {
    call.lse[lse_start(call, row.b, row.h) + row.i] = state.sum == 0 ? -kInfinity : state.max + std::log(state.sum);
  }
}

/// One row of the weights array: `gain` times the stage's value is added to what stands there.
void add_weights_row(const Attention& call, const Row& row, float gain, float* x, float* weights) {
  if (call.weights_stage < Stage::kMasked) {
    const int32_t end = call.k_start ? key_length(call, row.b) : call.Tk;
    for (int32_t j = 0; j < end; ++j) weights[j] += gain * logit(call, row, j, call.weights_stage);
    return;
  }
  const Visible visible(call, row);
  const RowState state = row_logits(call, row, visible, x);
  for (int32_t j = 0; j < call.Tk; ++j) {
    const bool inside = j >= visible.span.first && j < visible.span.end;
    if (call.weights_stage == Stage::kMasked) {
      weights[j] += gain * (inside ? x[j] : -kInfinity);
    } else if (inside && state.sum != 0) {
      weights[j] += gain * (std::exp(x[j] - state.max) / state.sum);
    }
  }
}

void attention_weights(const Attention& call, float* x, float* q) {
  const int32_t copies = call.weights_mean ? 1 : call.num_heads;
  const float gain = call.weights_mean ? 1.0f / static_cast<float>(call.num_heads) : 1.0f;
  std::fill(call.weights, call.weights + static_cast<size_t>(call.B) * copies * call.num_rows * call.Tk, 0.0f);
  for (int32_t b = 0; b < call.B; ++b) {
    for (int32_t head = 0; head < call.num_heads; ++head) {
      for (int32_t r = 0; r < call.num_rows; ++r) {
        const Row row = make_row(call, b, call.heads ? call.heads[head] : head, call.rows ? call.rows[r] : r, q);
        const size_t matrix = static_cast<size_t>(b) * copies + (call.weights_mean ? 0 : head);
        add_weights_row(call, row, gain, x, call.weights + (matrix * call.num_rows + r) * call.Tk);
      }
    }
  }
}

}  // namespace

size_t attention_scratch(const Attention& call) {
  return (static_cast<size_t>(call.Tk) + static_cast<size_t>(call.Dv) + static_cast<size_t>(call.D)) * sizeof(float);
}

void attention(const Attention& call) {
  float *x = static_cast<float*>(call.scratch), *sums = x + call.Tk, *q = sums + call.Dv;
  for (int32_t b = 0; b < call.B; ++b) {
    const int32_t rows = call.q_start ? query_length(call, b) : call.Tq;
    for (int32_t h = 0; h < call.H; ++h) {
      for (int32_t i = 0; i < rows; ++i) attend_row(call, make_row(call, b, h, i, q), x, sums);
    }
  }
  if (call.weights) attention_weights(call, x, q);
}

void merge(const Merge& call) {
  const size_t rows = static_cast<size_t>(call.B) * call.H * call.Tq;
  for (size_t row = 0; row < rows; ++row) {
    const float sink = call.sinks ? call.sinks[row / call.Tq % call.H] : -kInfinity;
    float max = sink;
    for (int32_t part = 0; part < call.parts; ++part) max = std::max(max, call.lses[part * rows + row]);
    float* out = call.out + row * call.Dv;
    std::fill(out, out + call.Dv, 0.0f);
    if (max == -kInfinity) {
      call.lse[row] = max;
      continue;
    }
    float total = std::exp(sink - max);
    for (int32_t part = 0; part < call.parts; ++part) {
      const float lse = call.lses[part * rows + row];
      if (lse == -kInfinity) continue;  // an empty part: whatever its output holds is not looked at
      const float weight = std::exp(lse - max);
      total += weight;
      const float* from = call.outs + (part * rows + row) * call.Dv;
      for (int32_t c = 0; c < call.Dv; ++c) out[c] += weight * from[c];
    }
    for (int32_t c = 0; c < call.Dv; ++c) out[c] /= total;
    call.lse[row] = max + std::log(total);
  }
}

namespace {

void rope_token(const Rope& call, ptrdiff_t x, ptrdiff_t out, const float* cos, const float* sin) {
  const int32_t half = call.rotary / 2;
  const int32_t distance = call.style == RopeStyle::kHalf ? half : 1, step = call.style == RopeStyle::kHalf ? 1 : 2;
  for (int32_t pair = 0; pair < half; ++pair) {
    const ptrdiff_t at = static_cast<ptrdiff_t>(pair) * step;
    const float x1 = load_value(call.x, call.type, x + at), x2 = load_value(call.x, call.type, x + at + distance);
    store_value(call.out, call.type, out + at, x1 * cos[pair] - x2 * sin[pair]);
    store_value(call.out, call.type, out + at + distance, x2 * cos[pair] + x1 * sin[pair]);
  }
  const size_t size = size_of(call.type);
  if (call.x != call.out || x != out) {
    std::memmove(static_cast<char*>(call.out) + (out + call.rotary) * size,
                 static_cast<const char*>(call.x) + (x + call.rotary) * size, (call.D - call.rotary) * size);
  }
}

}  // namespace

void rope(const Rope& call) {
  for (int32_t b = 0; b < call.B; ++b) {
    for (int32_t h = 0; h < call.H; ++h) {
      for (int32_t t = 0; t < call.T; ++t) {
        const ptrdiff_t table =
            static_cast<ptrdiff_t>(b) * call.table_batch + static_cast<ptrdiff_t>(t) * (call.rotary / 2);
        rope_token(call,
                   static_cast<ptrdiff_t>(b) * call.x_batch + static_cast<ptrdiff_t>(h) * call.x_head +
                       static_cast<ptrdiff_t>(t) * call.x_token,
                   static_cast<ptrdiff_t>(b) * call.out_batch + static_cast<ptrdiff_t>(h) * call.out_head +
                       static_cast<ptrdiff_t>(t) * call.out_token,
                   call.cos + table, call.sin + table);
      }
    }
  }
}

size_t linear_scratch(const Linear&) { return 0; }

void linear(const Linear& call) {
  const float* weight = call.packed ? call.packed : call.weight;
  for (int32_t m = 0; m < call.M; ++m) {
    const float* x = call.x + static_cast<ptrdiff_t>(m) * call.x_row;
    float* out = call.out + static_cast<ptrdiff_t>(m) * call.out_row;
    for (int32_t n = 0; n < call.N; ++n) {
      const float* row = weight + static_cast<ptrdiff_t>(n) * call.K;
      float sum = 0;
      for (int32_t c = 0; c < call.K; ++c) sum += x[c] * row[c];
      if (call.bias) sum += call.bias[n];
      if (call.residual) sum += call.residual[static_cast<ptrdiff_t>(m) * call.out_row + n];
      out[n] = sum;
    }
  }
}

size_t packed_linear_size(int32_t N, int32_t K) { return static_cast<size_t>(N) * K; }

void pack_linear(const float* weight, int32_t N, int32_t K, float* packed) {
  std::copy(weight, weight + static_cast<size_t>(N) * K, packed);
}

void unpack_linear(const float* packed, int32_t, int32_t K, int32_t n, float* row) {
  std::copy_n(packed + static_cast<ptrdiff_t>(n) * K, K, row);
}

void convert(const void* from, Type from_type, void* to, Type to_type, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    store_value(to, to_type, static_cast<ptrdiff_t>(i), load_value(from, from_type, static_cast<ptrdiff_t>(i)));
  }
}

namespace {

void softmax_row(const float* x, int32_t width, float* out) {
  if (width == 0) return;
  float max = *std::max_element(x, x + width);
  if (max == -kInfinity) max = 0;  // a row of -inf is empty
  const float total = sum_of(width, [=](int32_t c) { return std::exp(x[c] - max); });
  for (int32_t c = 0; c < width; ++c) out[c] = total == 0 ? 0 : std::exp(x[c] - max) / total;
}

void norm_row(const Norm& call, const float* x, float* out) {
  const auto width = static_cast<float>(call.width);
  const bool centred = call.kind == NormKind::kLayer;
  const float mean = centred ? sum_of(call.width, [=](int32_t c) { return x[c]; }) / width : 0;
  // What rounding left out of the mean: it counts where the mean is large beside the differences from it.
  const float rest = centred ? sum_of(call.width, [=](int32_t c) { return x[c] - mean; }) / width : 0;
  const auto from_mean = [=](int32_t c) { return x[c] - mean - rest; };
  const float square = sum_of(call.width, [=](int32_t c) { return from_mean(c) * from_mean(c); });
  const float factor = 1 / std::sqrt(square / width + call.epsilon);
  for (int32_t c = 0; c < call.width; ++c) {
    out[c] = from_mean(c) * factor * (call.weight ? call.weight[c] : 1) + (call.bias ? call.bias[c] : 0);
  }
}

float activate(ActivationKind kind, float x) {
  if (kind == ActivationKind::kSilu) return x / (1 + std::exp(-x));
  if (kind == ActivationKind::kGelu) return x / 2 * (1 + std::erf(x * 0.70710678f));
  return x / 2 * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
}

}  // namespace

void norm(const Norm& call) {
  for (int32_t row = 0; row < call.rows; ++row) {
    const ptrdiff_t first = static_cast<ptrdiff_t>(row) * call.width;
    if (call.kind == NormKind::kSoftmax) {
      softmax_row(call.x + first, call.width, call.out + first);
    } else {
      norm_row(call, call.x + first, call.out + first);
    }
  }
}

void activation(const Activation& call) {
  for (int32_t i = 0; i < call.count; ++i) {
    const float gate = call.gate ? call.gate[i] : 1;
    call.out[i] = activate(call.kind, call.x[i]) * gate;
  }
}

}  // namespace attention::plain
