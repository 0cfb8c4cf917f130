// append(): tokens of every type into caches of every type, in pieces and round a ring, against a definition of its own
// of what each byte must be; and no other byte changes. Attention over such caches is in random_test.cpp.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "attention.h"
#include "half.h"
#include "rounds.h"

namespace {

using attention::Type;
using host::Block;
using host::kUntouched;
using host::Source;

struct Cache {
  attention::Append call{};
  int32_t rows;
  Block from, to, scale, first, length;
  bool quantised() const { return call.to_type >= Type::kInt8; }
  ptrdiff_t unit() const { return quantised() ? 1 : static_cast<ptrdiff_t>(attention::size_of(call.to_type)); }
};

Cache make_cache(Source& source) {
  Cache cache;
  attention::Append& call = cache.call;
  call.B = source.pick(0, 3), call.H = source.pick(0, 3), call.T = source.pick(0, 12);
  call.width = source.coin() ? source.pick(1, 40) : source.pick(1, 140);
  call.to_type = Type(source.pick(0, 5));
  if (call.to_type >= Type::kQ8_0) call.width = (call.width + 31) / 32 * 32;
  call.from_type = cache.quantised() ? Type::kFloat32 : Type(source.pick(0, 2));
  call.ring_first = source.pick(0, 4);
  call.ring_size = source.coin() ? source.pick(1, 9) : 0;
  const int32_t gap = source.pick(0, 2), from_width = call.width + gap;
  call.from_token = source.coin() ? from_width : call.H * from_width;
  call.from_head = call.from_token == from_width ? call.T * from_width : from_width;
  call.from_batch = call.H * call.T * from_width;
  const bool any = call.B * call.H * call.T > 0;
  const size_t from_unit = attention::size_of(call.from_type);
  cache.from = Block((any ? size_t(call.B) * call.from_batch - gap : 0) * from_unit, 0, from_unit * source.pick(0, 3));
  call.from = cache.from.data();

  cache.first = Block(size_t(call.B) * 4), cache.length = Block(size_t(call.B) * 4);
  cache.rows = call.ring_first + call.ring_size;
  for (int32_t b = 0; b < call.B; ++b) {
    const int32_t first = cache.first.as<int32_t>()[b] = source.pick(0, 30);
    if (call.ring_size == 0) cache.rows = std::max(cache.rows, first + call.T);
    cache.length.as<int32_t>()[b] = source.pick(0, call.T);
  }
  call.first = cache.first.as<int32_t>();
  if (source.coin()) call.length = cache.length.as<int32_t>();
  const auto size = static_cast<int32_t>(cache.quantised() ? attention::token_bytes(call.to_type, call.width)
                                                           : static_cast<size_t>(call.width));
  call.to_token = size + gap, call.to_head = cache.rows * call.to_token, call.to_batch = call.H * call.to_head;
  const ptrdiff_t end = any && cache.rows > 0 ? ptrdiff_t(call.B) * call.to_batch - gap : 0;
  cache.to = Block(end * cache.unit(), kUntouched, cache.unit() * source.pick(0, 3));
  call.to = cache.to.data();
  call.scale_head = cache.rows, call.scale_batch = call.H * cache.rows;
  cache.scale = Block(size_t(call.B) * call.scale_batch * 4, kUntouched, 4 * source.pick(0, 3));
  if (call.to_type == Type::kInt8) call.scale = cache.scale.as<float>();
  return cache;
}

void fill(const Cache& cache, Source& source) {
  const size_t count = cache.from.bytes() / attention::size_of(cache.call.from_type);
  for (size_t i = 0; i < count; ++i) {
    float value = source.value();
    const uint64_t kind = source.bits() % 512;
    if (kind == 0) value = std::numeric_limits<float>::quiet_NaN();
    if (kind == 1) value = -std::numeric_limits<float>::infinity();
    if (kind == 2) value *= 1e-39f;
    if (kind < 5 && kind > 2) value *= 1e4f;
    // Halves of whole numbers, so that quotients fall on the middle.
    if (kind > 256) value = std::round(value * 2) / 2;
    attention::store_value(cache.from.data(), cache.call.from_type, static_cast<ptrdiff_t>(i), value);
  }
}

/// The bytes of 32 numbers as the formulas say, without the scale. `reads_nan`: a value was not finite.
std::vector<uint8_t> block_numbers(Type type, const float* x, float d, bool reads_nan) {
  std::vector<uint8_t> bytes(type == Type::kQ4_0 ? 16 : 32);
  for (int32_t c = 0; c < 32 && !reads_nan; ++c) {
    if (type == Type::kQ4_0) {
      const int q = d == 0 ? 8 : std::min(15, static_cast<int>(x[c] / d + 8.5f));
      bytes[c % 16] = static_cast<uint8_t>(bytes[c % 16] | q << (c < 16 ? 0 : 4));
    } else {
      const int offset = type == Type::kInt8 && c % 2 == 0 ? 128 : 0;
      bytes[c] = static_cast<uint8_t>((d == 0 ? 0 : static_cast<int>(std::round(x[c] / d))) + offset);
    }
  }
  return bytes;
}

/// What a token must be in a quantised cache.
struct Token {
  std::vector<uint8_t> bytes;
  std::vector<bool> known;  // where a value was not finite the numbers are anything
  float scale = 0;
};

Token quantised(Type type, const std::vector<float>& given) {
  Token token;
  std::vector<float> x = given;
  x.resize((x.size() + 31) / 32 * 32);
  const auto append = [&](const std::vector<uint8_t>& bytes, bool known) {
    token.bytes.insert(token.bytes.end(), bytes.begin(), bytes.end());
    token.known.insert(token.known.end(), bytes.size(), known);
  };
  const size_t span = type == Type::kInt8 ? x.size() : 32;
  for (size_t first = 0; first < x.size(); first += span) {
    const float* values = x.data() + first;
    const bool reads_nan = std::any_of(values, values + span, [](float value) { return !std::isfinite(value); });
    const float largest =
        *std::max_element(values, values + span, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
    const float d = reads_nan ? NAN : type == Type::kQ4_0 ? largest / -8 : std::fabs(largest) / 127;
    if (type == Type::kInt8) {
      token.scale = d;
    } else {
      const uint16_t half = attention::half_from_float(d);
      append({static_cast<uint8_t>(half & 0xff), static_cast<uint8_t>(half >> 8)}, true);
    }
    for (size_t c = 0; c < span; c += 32) append(block_numbers(type, values + c, d, reads_nan), !reads_nan);
  }
  return token;
}

class Checker {
 public:
  explicit Checker(const Cache& cache)
      : cache_(cache), call_(cache.call), touched_(cache.to.bytes()), scales_(cache.scale.count<float>()) {}

  bool run() {
    for (int32_t b = 0; b < call_.B; ++b) {
      const int32_t length = call_.length ? call_.length[b] : call_.T;
      for (int32_t h = 0; h < call_.H; ++h) {
        for (int32_t t = 0; t < length; ++t) {
          // A later token may stand where this one was.
          const int32_t time = call_.first[b] + t;
          const bool in_ring = call_.ring_size > 0 && time >= call_.ring_first;
          if (in_ring && t + call_.ring_size < length) continue;
          const int32_t row = in_ring ? call_.ring_first + (time - call_.ring_first) % call_.ring_size : time;
          if (!check_token(b, h, t, row)) return fail("token", t);
        }
      }
    }
    for (size_t i = 0; i < touched_.size(); ++i) {
      if (!touched_[i] && cache_.to.as<uint8_t>()[i] != kUntouched)
        return fail("a byte that is none of the tokens'", i);
    }
    for (size_t i = 0; i < scales_.size(); ++i) {
      const auto* bytes = cache_.scale.as<uint8_t>() + 4 * i;
      const bool clean = std::all_of(bytes, bytes + 4, [](uint8_t byte) { return byte == kUntouched; });
      if (!scales_[i] && !clean) return fail("a scale that is none of the tokens'", i);
    }
    return true;
  }

 private:
  bool check_token(int32_t b, int32_t h, int32_t t, int32_t row) {
    const ptrdiff_t from = ptrdiff_t(b) * call_.from_batch + h * call_.from_head + ptrdiff_t(t) * call_.from_token;
    const ptrdiff_t to = ptrdiff_t(b) * call_.to_batch + h * call_.to_head + ptrdiff_t(row) * call_.to_token;
    std::vector<float> x(call_.width);
    for (int32_t c = 0; c < call_.width; ++c) x[c] = attention::load_value(call_.from, call_.from_type, from + c);
    if (cache_.quantised()) {
      const Token token = quantised(call_.to_type, x);
      const uint8_t* bytes = cache_.to.as<uint8_t>() + to;
      bool same = true;
      for (size_t i = 0; i < token.bytes.size(); ++i) {
        same &= !token.known[i] || bytes[i] == token.bytes[i];
        touched_[to + i] = true;
      }
      if (call_.to_type != Type::kInt8) return same;
      const size_t at = size_t(b) * call_.scale_batch + size_t(h) * call_.scale_head + row;
      scales_[at] = true;
      const float scale = call_.scale[at];
      return same && (scale == token.scale || (std::isnan(scale) && std::isnan(token.scale)));
    }
    bool same = true;
    for (int32_t c = 0; c < call_.width; ++c) {
      float wanted[1];
      attention::store_value(wanted, call_.to_type, 0, x[c]);
      same &= std::memcmp(wanted, cache_.to.as<char>() + (to + c) * cache_.unit(), cache_.unit()) == 0;
      for (ptrdiff_t i = 0; i < cache_.unit(); ++i) touched_[(to + c) * cache_.unit() + i] = true;
    }
    return same;
  }

  bool fail(const char* what, size_t at) const {
    std::printf("%s %zu: B %d H %d T %d width %d, type %d to %d, ring %d + %d\n", what, at, call_.B, call_.H, call_.T,
                call_.width, int(call_.from_type), int(call_.to_type), call_.ring_first, call_.ring_size);
    return false;
  }

  const Cache& cache_;
  const attention::Append& call_;
  std::vector<bool> touched_, scales_;
};

/// The same tokens in two calls leave the same bytes.
bool in_pieces(const Cache& cache, Source& source) {
  const attention::Append& whole = cache.call;
  const Block to(cache.to.bytes(), kUntouched), scale(cache.scale.bytes(), kUntouched);
  Block first(size_t(whole.B) * 4), length(size_t(whole.B) * 4);
  const int32_t cut = source.pick(0, whole.T);
  attention::Append part = whole;
  part.to = to.data(), part.scale = whole.scale ? scale.as<float>() : nullptr;
  part.first = first.as<int32_t>(), part.length = length.as<int32_t>();
  for (const bool second : {false, true}) {
    for (int32_t b = 0; b < whole.B; ++b) {
      const int32_t all = whole.length ? whole.length[b] : whole.T, before = std::min(all, cut);
      first.as<int32_t>()[b] = whole.first[b] + (second ? before : 0);
      length.as<int32_t>()[b] = second ? all - before : before;
    }
    const ptrdiff_t skip = second ? ptrdiff_t(cut) * whole.from_token * attention::size_of(whole.from_type) : 0;
    if (second && cut == whole.T) break;
    part.from = static_cast<const char*>(whole.from) + skip;
    part.T = second ? whole.T - cut : cut;
    attention::append(part);
  }
  const bool same = std::memcmp(to.data(), cache.to.data(), to.bytes()) == 0 &&
                    std::memcmp(scale.data(), cache.scale.data(), scale.bytes()) == 0;
  if (!same) std::printf("two pieces differ from one, cut at %d of %d\n", cut, whole.T);
  return same;
}

bool check_append(Source& source) {
  const Cache cache = make_cache(source);
  fill(cache, source);
  attention::append(cache.call);
  return Checker(cache).run() && in_pieces(cache, source);
}

}  // namespace

int main(int, char** arguments) { return host::run_rounds(std::atoi(arguments[1]), 20240302, {check_append}); }
