// Merge, rope, linear and embedding, on random shapes and options, against their formulas in float64 and by the rule of
// accuracy.h.
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "accuracy.h"
#include "attention.h"
#include "half.h"
#include "rounds.h"

namespace {

using attention::Type;
using host::Accuracy;
using host::Block;
using host::kUntouched;
using host::numbers;
using host::size;
using host::Source;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool check_merge(Source& source) {
  attention::Merge call{
      source.pick(1, 5), source.pick(0, 2), source.pick(1, 3), source.pick(0, 40), size(source), {}, {}, {}, {}, {}};
  const size_t rows = size_t(call.B) * call.H * call.Tq;
  const Block outs = numbers(source, call.parts * rows * call.Dv), lses = numbers(source, call.parts * rows);
  const Block sinks = numbers(source, call.H);
  for (size_t i = 0; i < call.parts * rows; ++i) {
    float& lse = lses.as<float>()[i];
    if (source.bits() % 4 == 0) lse = -kInfinity;
    // What an empty part holds is not looked at.
    for (int32_t c = 0; c < call.Dv && lse == -kInfinity; ++c) outs.as<float>()[i * call.Dv + c] = NAN;
  }
  call.outs = outs.as<float>(), call.lses = lses.as<float>();
  if (source.coin()) call.sinks = sinks.as<float>();
  Block results[4] = {Block(rows * call.Dv * 4), Block(rows * 4), Block(rows * call.Dv * 4), Block(rows * 4)};
  call.out = results[0].as<float>(), call.lse = results[1].as<float>();
  attention::merge(call);
  call.out = results[2].as<float>(), call.lse = results[3].as<float>();
  attention::plain::merge(call);
  Accuracy out, lse;
  for (size_t row = 0; row < rows; ++row) {
    double total = call.sinks ? std::exp(double(call.sinks[row / call.Tq % call.H])) : 0;
    for (int32_t part = 0; part < call.parts; ++part) total += std::exp(double(call.lses[part * rows + row]));
    lse.add(results[1].as<float>()[row], results[3].as<float>()[row], std::log(total), 1e-6);
    for (int32_t c = 0; c < call.Dv; ++c) {
      double sum = 0;
      for (int32_t part = 0; part < call.parts; ++part) {
        const double weight = std::exp(double(call.lses[part * rows + row]));
        if (weight > 0) sum += weight / total * call.outs[(part * rows + row) * call.Dv + c];
      }
      const size_t at = row * call.Dv + c;
      out.add(results[0].as<float>()[at], results[2].as<float>()[at], sum, 3e-6);
    }
  }
  return out.good("merge, out") && lse.good("merge, lse");
}

/// Tables of angles, and a tensor of any floating-point type.
struct RopeArrays {
  attention::Rope call{};
  Block x, cos, sin;
  ptrdiff_t elements = 0;

  explicit RopeArrays(Source& source) {
    call.B = source.pick(0, 3), call.H = source.pick(0, 3), call.T = source.pick(0, 9);
    call.rotary = 2 * source.pick(0, source.coin() ? 9 : 66), call.D = call.rotary + source.pick(0, 9);
    call.style = attention::RopeStyle(source.pick(0, 1)), call.type = Type(source.pick(0, 2));
    const int32_t gap = source.pick(0, 2), width = call.D + gap;
    call.x_token = source.coin() ? width : call.H * width;
    call.x_head = call.x_token == width ? call.T * width : width;
    call.x_batch = call.H * call.T * width;
    call.out_token = call.x_token, call.out_head = call.x_head, call.out_batch = call.x_batch;
    if (call.B * call.H * call.T > 0) elements = ptrdiff_t(call.B) * call.x_batch - gap;
    const size_t unit = attention::size_of(call.type);
    x = Block(elements * unit, kUntouched, unit * source.pick(0, 3));
    call.x = x.data();
    call.table_batch = source.coin() ? call.T * call.rotary / 2 : 0;
    const size_t angles = size_t(call.table_batch ? call.B : 1) * call.T * call.rotary / 2;
    cos = numbers(source, angles), sin = numbers(source, angles);
    call.cos = cos.as<float>(), call.sin = sin.as<float>();
  }
  template <typename Use>
  void each_token(Use use) const {
    for (int32_t b = 0; b < call.B; ++b) {
      for (int32_t h = 0; h < call.H; ++h) {
        for (int32_t t = 0; t < call.T; ++t) {
          const ptrdiff_t table = ptrdiff_t(b) * call.table_batch + t * (call.rotary / 2);
          use(ptrdiff_t(b) * call.x_batch + ptrdiff_t(h) * call.x_head + ptrdiff_t(t) * call.x_token, table);
        }
      }
    }
  }
  float value(const Block& block, ptrdiff_t at) const { return attention::load_value(block.data(), call.type, at); }
};

bool check_rope(Source& source) {
  RopeArrays arrays(source);
  attention::Rope& call = arrays.call;
  arrays.each_token([&](ptrdiff_t token, ptrdiff_t) {
    for (int32_t c = 0; c < call.D; ++c) attention::store_value(arrays.x.data(), call.type, token + c, source.value());
  });
  Block in_place(arrays.x.bytes()), fast(arrays.x.bytes(), kUntouched), plain(arrays.x.bytes(), kUntouched);
  std::memcpy(in_place.data(), arrays.x.data(), arrays.x.bytes());
  call.out = plain.data();
  attention::plain::rope(call);
  call.out = fast.data();
  attention::rope(call);
  call.x = call.out = in_place.data();
  attention::rope(call);
  if (std::memcmp(in_place.data(), fast.data(), fast.bytes()) != 0) {
    std::puts("rope: in place differs, or something between the tokens was written");
    return false;
  }
  Accuracy accuracy;
  const int32_t half = call.rotary / 2;
  const bool is_half = call.style == attention::RopeStyle::kHalf;
  const double unit = call.type == Type::kFloat32 ? 1e-6 : call.type == Type::kFloat16 ? 0x1p-8 : 0x1p-5;
  bool passed = true;
  arrays.each_token([&](ptrdiff_t token, ptrdiff_t table) {
    for (int32_t pair = 0; pair < half; ++pair) {
      const ptrdiff_t first = token + (is_half ? pair : 2 * pair), second = first + (is_half ? half : 1);
      const double x1 = arrays.value(arrays.x, first), x2 = arrays.value(arrays.x, second);
      const double cos = call.cos[table + pair], sin = call.sin[table + pair];
      accuracy.add(arrays.value(fast, first), arrays.value(plain, first), x1 * cos - x2 * sin, 16 * unit);
      accuracy.add(arrays.value(fast, second), arrays.value(plain, second), x2 * cos + x1 * sin, 16 * unit);
    }
    for (int32_t c = call.rotary; c < call.D; ++c) {
      passed &= arrays.value(fast, token + c) == arrays.value(arrays.x, token + c);
    }
  });
  if (!passed) std::puts("rope: channels past the rotary ones changed");
  return passed && accuracy.good("rope");
}

bool check_linear(Source& source) {
  attention::Linear call{};
  call.M = source.coin() ? source.pick(0, 9) : source.pick(0, 70), call.N = size(source), call.K = size(source);
  call.x_row = call.K + source.pick(0, 2), call.out_row = call.N + source.pick(0, 2);
  const auto extent = [&](int32_t row, int32_t width) { return call.M == 0 ? 0 : size_t(call.M - 1) * row + width; };
  const Block x = numbers(source, extent(call.x_row, call.K)), weight = numbers(source, size_t(call.N) * call.K);
  const size_t outs = extent(call.out_row, call.N);
  const Block bias = numbers(source, call.N), residual = numbers(source, outs);
  const Block plain(outs * 4, kUntouched), fast(outs * 4, kUntouched), from_packed(outs * 4, kUntouched);
  call.x = x.as<float>(), call.weight = weight.as<float>(), call.bias = source.coin() ? bias.as<float>() : nullptr;
  call.residual = source.coin() ? residual.as<float>() : nullptr;
  call.out = plain.as<float>();
  attention::plain::linear(call);
  const Block scratch(attention::linear_scratch(call)), packed(attention::packed_linear_size(call.N, call.K) * 4);
  call.scratch = scratch.data();
  call.out = fast.as<float>();
  attention::linear(call);
  attention::pack_linear(call.weight, call.N, call.K, packed.as<float>());
  call.weight = nullptr, call.packed = packed.as<float>(), call.out = from_packed.as<float>();
  attention::linear(call);
  if (std::memcmp(fast.data(), from_packed.data(), fast.bytes()) != 0) {
    std::puts("linear: a packed weight gives other bits");
    return false;
  }
  const Block in_place(outs * 4);
  std::memcpy(in_place.data(), residual.data(), in_place.bytes());
  if (call.residual) call.residual = call.out = in_place.as<float>(), attention::linear(call);
  Accuracy accuracy;
  for (int32_t m = 0; m < call.M; ++m) {
    for (int32_t n = 0; n < call.N; ++n) {
      const size_t at = size_t(m) * call.out_row + n;
      const double added = call.residual ? residual.as<float>()[at] : 0, biased = call.bias ? call.bias[n] : 0;
      double sum = added + biased, size = std::fabs(added) + std::fabs(biased);
      for (int32_t c = 0; c < call.K; ++c) {
        const double product = double(call.x[size_t(m) * call.x_row + c]) * weight.as<float>()[size_t(n) * call.K + c];
        sum += product, size += std::fabs(product);
      }
      accuracy.add(fast.as<float>()[at], plain.as<float>()[at], sum, (call.K + 3) * 0x1p-24 * size);
      if (call.residual && in_place.as<float>()[at] != fast.as<float>()[at]) {
        std::puts("linear: a residual in place gives other bits");
        return false;
      }
    }
  }
  return accuracy.good("linear");
}

bool check_embedding(Source& source) {
  attention::Embedding call{};
  call.T = source.pick(0, 9), call.width = size(source), call.type = Type(source.pick(0, 2));
  const int32_t vocabulary = source.pick(1, 7);
  const size_t count = size_t(call.T) * call.width, entries = size_t(vocabulary) * call.width;
  const Block table(entries * attention::token_bytes(call.type, 1)), tokens(size_t(call.T) * 4), out(count * 4);
  const Block positions = numbers(source, count);
  for (size_t i = 0; i < entries; ++i) attention::store_value(table.data(), call.type, ptrdiff_t(i), source.value());
  for (int32_t t = 0; t < call.T; ++t) tokens.as<int32_t>()[t] = source.pick(0, vocabulary - 1);
  call.table = table.data(), call.tokens = tokens.as<int32_t>(), call.out = out.as<float>();
  call.positions = source.coin() ? positions.as<float>() : nullptr;
  const Block wide(entries * 4), packed(attention::packed_linear_size(vocabulary, call.width) * 4);
  call.vocabulary = vocabulary;
  if (source.coin()) {
    attention::convert(table.data(), call.type, wide.data(), Type::kFloat32, entries);
    attention::pack_linear(wide.as<float>(), vocabulary, call.width, packed.as<float>());
    call.table = nullptr, call.packed = packed.as<float>();
  }
  attention::embedding(call);
  for (size_t i = 0; i < count; ++i) {
    const ptrdiff_t entry = ptrdiff_t(call.tokens[i / call.width]) * call.width + ptrdiff_t(i % call.width);
    float expected = attention::load_value(table.data(), call.type, entry);
    if (call.positions) expected += call.positions[i];
    if (call.out[i] == expected) continue;
    std::printf("embedding: %g in place of %g\n", call.out[i], expected);
    return false;
  }
  return true;
}

}  // namespace

int main(int, char** arguments) {
  return host::run_rounds(std::atoi(arguments[1]), 20240301, {check_merge, check_rope, check_linear, check_embedding});
}
