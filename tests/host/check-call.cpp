#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "call.h"
#include "half.h"
#include "layout.h"
#include "quantize.h"
#include "tolerance.h"

namespace host {

namespace {

using attention::Attention;
using attention::Type;

struct Differences {
  const char* what;
  Type type;
  double tolerance;
};

double value_at(const Block& block, Type type, size_t i) {
  return attention::load_value(block.data(), type, static_cast<ptrdiff_t>(i));
}

bool same_bits(const Block& a, const Block& b, Type type, size_t i) {
  const size_t width = attention::size_of(type);
  return std::memcmp(a.as<char>() + i * width, b.as<char>() + i * width, width) == 0;
}

bool untouched(const Block& block, Type type, size_t i) {
  const size_t width = attention::size_of(type);
  const unsigned char* bytes = block.as<unsigned char>() + i * width;
  return std::all_of(bytes, bytes + width, [](unsigned char byte) { return byte == kUntouched; });
}

/// Every element: what one leaves alone the other does too; NaN and infinities are the same; the rest is near.
bool near(const Differences& how, const Block& fast, const Block& plain) {
  for (size_t i = 0; i < plain.bytes() / attention::size_of(how.type); ++i) {
    if (same_bits(fast, plain, how.type, i)) continue;
    const double a = value_at(fast, how.type, i), b = value_at(plain, how.type, i);
    const bool both_nan = std::isnan(a) && std::isnan(b);
    const double unit = how.type == Type::kFloat32 ? 0x1p-23 : how.type == Type::kFloat16 ? 0x1p-10 : 0x1p-7;
    const double granted = how.tolerance + unit * std::fabs(b) + (how.type == Type::kFloat16 ? 0x1p-24 : 0);
    const bool is_near = both_nan || a == b || std::fabs(a - b) <= granted;
    if (is_near && !untouched(plain, how.type, i) && !untouched(fast, how.type, i)) continue;
    std::printf("%s[%zu] = %.9g, by definition %.9g +- %.3g\n", how.what, i, a, b, granted);
    return false;
  }
  return true;
}

/// One key or value that is replaced.
struct Special {
  bool is_key;
  int32_t b, head, j;
  float value;
};

/// Where a token stands; for kInt8 its scale, which alone can be NaN.
const char* place_of(const Attention& call, bool is_key, int32_t b, int32_t head, int32_t j) {
  const attention::Tokens tokens =
      is_key ? attention::key_tokens(call, b, head) : attention::value_tokens(call, b, head);
  const ptrdiff_t row = tokens.row(j);
  if (tokens.type == Type::kInt8) return reinterpret_cast<const char*>(tokens.scale + row);
  const ptrdiff_t unit =
      attention::is_quantized(tokens.type) ? 1 : static_cast<ptrdiff_t>(attention::size_of(tokens.type));
  return static_cast<const char*>(tokens.data) + (tokens.first + row * tokens.stride) * unit;
}

void put(Call& call, const Special& special, Source& source) {
  const Attention& a = call.args;
  char* place = const_cast<char*>(place_of(a, special.is_key, special.b, special.head, special.j));
  const Type type = special.is_key ? a.k_type : a.v_type;
  if (type == Type::kInt8) {
    std::memcpy(place, &special.value, sizeof special.value);
    return;
  }
  const int32_t width = special.is_key ? a.D : a.Dv, one = source.coin() ? source.pick(0, width - 1) : -1;
  if (attention::is_quantized(type)) {
    const uint16_t half = attention::half_from_float(special.value);
    for (int32_t block = 0; block < attention::blocks_of(width); ++block, place += attention::block_bytes(type)) {
      if (one < 0 || one / attention::kBlockValues == block) std::memcpy(place, &half, sizeof half);
    }
    return;
  }
  for (int32_t c = 0; c < width; ++c) {
    if (one < 0 || one == c) attention::store_value(place, type, c, special.value);
  }
}

/// Whether a row sees the token that was replaced, under whatever number.
bool sees_special(const Attention& call, const Special& special, int32_t b, int32_t h, int32_t i) {
  const char* const place = place_of(call, special.is_key, special.b, special.head, special.j);
  for (int32_t j = 0; j < call.Tk; ++j) {
    if (sees(call, b, h, i, j) && place_of(call, special.is_key, b, attention::kv_head(call, h), j) == place)
      return true;
  }
  return false;
}

/// Compares one row of a result: bits where the token is hidden; where it is seen, whether the row shows it.
class RowJudge {
 public:
  /// `bytes`: keys of infinity read as NaN.
  RowJudge(const Special& special, const char* what, bool bytes = false)
      : special_(special),
        what_(what),
        vague_(std::fabs(special.value) == kHuge || (bytes && special.is_key && std::isinf(special.value))) {}

  bool row(bool is_seen, Type type, const Block& clean, const Block& fast, const Block& plain, size_t first,
           size_t count) const {
    bool fast_shows = false, plain_shows = false;
    for (size_t i = first; i < first + count; ++i) {
      if (!is_seen && !same_bits(clean, fast, type, i))
        return fail(i, value_at(fast, type, i), value_at(clean, type, i));
      fast_shows |= shows(value_at(fast, type, i));
      plain_shows |= shows(value_at(plain, type, i));
    }
    if (!is_seen || fast_shows == plain_shows || vague_) return true;
    return fail(first, value_at(fast, type, first), value_at(plain, type, first));
  }

  static constexpr float kHuge = 1e38f;

 private:
  bool shows(double x) const { return std::isnan(special_.value) ? std::isnan(x) : !std::isfinite(x); }
  bool fail(size_t i, double got, double wanted) const {
    std::printf("%s[%zu] = %.9g, not %.9g, with %g in %s %d of head %d, item %d\n", what_, i, got, wanted,
                double(special_.value), special_.is_key ? "key" : "value", special_.j, special_.head, special_.b);
    return false;
  }

  const Special& special_;
  const char* what_;
  bool vague_;  // huge numbers may overflow in one order of sums and not in another
};

bool output_rows(const Call& call, const Special& special, const Results& clean, const Results& fast,
                 const Results& plain) {
  const Attention& a = call.args;
  const bool bytes = a.precision == attention::Precision::kInt8;
  const RowJudge out(special, "out", bytes), lse(special, "lse", bytes);
  for (int32_t b = 0; b < a.B; ++b) {
    for (int32_t h = 0; h < a.H; ++h) {
      for (int32_t i = 0; i < rows_of(a, b); ++i) {
        const bool seen = sees_special(a, special, b, h, i);
        const size_t at = attention::out_start(a, b, h) + static_cast<ptrdiff_t>(i) * a.out_token;
        for (int32_t c = 0; a.out && c < a.Dv; ++c) {
          if (!out.row(seen, a.out_type, clean.out, fast.out, plain.out, at + c, 1)) return false;
        }
        const size_t at_lse = attention::lse_start(a, b, h) + i;
        const bool in_lse = seen && special.is_key;
        if (a.lse && !lse.row(in_lse, Type::kFloat32, clean.lse, fast.lse, plain.lse, at_lse, 1)) return false;
      }
    }
  }
  return true;
}

bool weights_rows(const Call& call, const Special& special, const Results& clean, const Results& fast,
                  const Results& plain) {
  const Attention& a = call.args;
  // Logits on their way are there for hidden keys too.
  if (!a.weights || a.weights_stage < attention::Stage::kMasked) return true;
  const RowJudge weights(special, "weights");
  const int32_t copies = a.weights_mean ? 1 : a.num_heads;
  for (int32_t matrix = 0; matrix < a.B * copies; ++matrix) {
    for (int32_t r = 0; r < a.num_rows; ++r) {
      bool seen = false;
      for (int32_t n = 0; n < a.num_heads && special.is_key; ++n) {
        if (!a.weights_mean && n != matrix % copies) continue;
        seen |= sees_special(a, special, matrix / copies, a.heads ? a.heads[n] : n, a.rows ? a.rows[r] : r);
      }
      const size_t first = (static_cast<size_t>(matrix) * a.num_rows + r) * a.Tk;
      if (!weights.row(seen, Type::kFloat32, clean.weights, fast.weights, plain.weights, first, a.Tk)) return false;
    }
  }
  return true;
}

/// The kernels against the definition of the straight call, row by row.
bool check_straight(const Call& call, const Results& fast, const Tolerance& tolerance) {
  const Attention& a = call.args;
  const Call straight = straighten(call);
  const Results plain = run(straight.args, straight.sizes, Which::kPlain);
  // Gathered as the straight ones stand; rows that don't exist as they are there.
  const size_t width = attention::size_of(a.out_type);
  Block out(straight.sizes.out * width, kUntouched), expected(straight.sizes.out * width, kUntouched);
  Block lse(straight.sizes.lse * 4, kUntouched), expected_lse(straight.sizes.lse * 4, kUntouched);
  for (int32_t b = 0; b < a.B; ++b) {
    for (int32_t h = 0; h < a.H; ++h) {
      for (int32_t i = 0; i < rows_of(a, b); ++i) {
        const size_t row = (static_cast<size_t>(b) * a.H + h) * a.Tq + i;
        const ptrdiff_t from = attention::out_start(a, b, h) + static_cast<ptrdiff_t>(i) * a.out_token;
        for (int32_t c = 0; a.out && c < a.Dv; ++c) {
          const auto at = static_cast<ptrdiff_t>(row * a.Dv + c);
          attention::store_value(out.data(), a.out_type, at,
                                 attention::load_value(fast.out.data(), a.out_type, from + c));
          attention::store_value(expected.data(), a.out_type, at, plain.out.as<float>()[at]);
        }
        if (!a.lse) continue;
        lse.as<float>()[row] = fast.lse.as<float>()[attention::lse_start(a, b, h) + i];
        expected_lse.as<float>()[row] = plain.lse.as<float>()[row];
      }
    }
  }
  const bool raw = a.weights_stage < attention::Stage::kMasked;  // of keys that are not there, too
  return near({"straight out", a.out_type, tolerance.out()}, out, expected) &&
         near({"straight lse", Type::kFloat32, tolerance.lse()}, lse, expected_lse) &&
         (raw || near({"straight weights", Type::kFloat32, tolerance.weights()}, fast.weights, plain.weights));
}

/// The first valid key of some item, or none.
bool choose_special(const Attention& a, Source& source, Special& special) {
  if (a.B == 0 || a.H == 0 || a.Tk == 0) return false;
  special.is_key = source.coin();
  special.b = source.pick(0, a.B - 1);
  special.head = source.pick(0, a.Hkv - 1);
  const int32_t keys = a.k_length ? a.k_length[special.b] : a.Tk;
  if (keys == 0) return false;
  special.j = source.pick(0, keys - 1);
  const float infinity = std::numeric_limits<float>::infinity();
  special.value = source.among({std::numeric_limits<float>::quiet_NaN(), infinity, -infinity, RowJudge::kHuge});
  return true;
}

bool check_special(Call& call, const Results& clean, Source& source) {
  Special special;
  if (!choose_special(call.args, source, special)) return true;
  put(call, special, source);
  const Results fast = run(call.args, call.sizes, Which::kFast), plain = run(call.args, call.sizes, Which::kPlain);
  return output_rows(call, special, clean, fast, plain) && weights_rows(call, special, clean, fast, plain);
}

}  // namespace

bool check_call(Source& source) {
  Call call = make_call(source);
  const Results plain = run(call.args, call.sizes, Which::kPlain), fast = run(call.args, call.sizes, Which::kFast);
  const Tolerance tolerance(call);
  const bool good = near({"out", call.args.out_type, tolerance.out()}, fast.out, plain.out) &&
                    near({"lse", Type::kFloat32, tolerance.lse()}, fast.lse, plain.lse) &&
                    near({"weights", Type::kFloat32, tolerance.weights()}, fast.weights, plain.weights) &&
                    (!source.once_in(4) || check_straight(call, fast, tolerance)) && check_special(call, fast, source);
  if (!good) print(call);
  return good;
}

}  // namespace host
