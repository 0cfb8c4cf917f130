#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>

#include "call.h"
#include "half.h"
#include "layout.h"
#include "quantize.h"

namespace host {

namespace {

using attention::Attention;
using attention::Type;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr unsigned char kNaN = 0xff;  // repeated: a NaN in every floating-point type

struct Strides {
  int32_t batch, head, token;
};

class Maker {
 public:
  explicit Maker(Source& source) : s_(source), a_(call_.args) {}

  Call make() {
    choose_sizes();
    choose_types();
    choose_lengths();
    choose_positions();
    choose_weights();
    choose_ring();
    place_queries();
    place_tokens(a_.k_type, a_.D, a_.k_batch, a_.k_head, a_.k_token, call_.k, call_.k_scale, a_.k, a_.k_scale);
    place_tokens(a_.v_type, a_.Dv, a_.v_batch, a_.v_head, a_.v_token, call_.v, call_.v_scale, a_.v, a_.v_scale);
    place_results();
    choose_mask();
    choose_logits();
    return std::move(call_);
  }

 private:
  int32_t width() {
    switch (s_.pick(0, 3)) {
      case 0:
        return s_.pick(1, 20);
      case 1:
        return s_.among({31, 32, 33, 63, 64, 65, 96, 128});
      default:
        return s_.pick(1, 70);
    }
  }

  void choose_sizes() {
    a_.B = s_.once_in(32) ? 0 : s_.pick(1, 3);
    a_.Hkv = s_.pick(1, 3);
    a_.H = a_.Hkv * (s_.once_in(64) ? 0 : s_.pick(1, 4));
    a_.Tq = s_.coin() ? s_.pick(0, 9) : s_.pick(1, 70);
    a_.Tk = s_.coin() ? s_.pick(0, 40) : s_.pick(0, 200);
    if (a_.Tq < 8 && s_.once_in(4)) a_.Tk = s_.pick(900, 2200);
    a_.D = width();
    a_.Dv = s_.coin() ? a_.D : width();
    const auto work = [this] { return static_cast<double>(std::max(a_.B, 1)) * a_.H * a_.Tq * a_.Tk * (a_.D + a_.Dv); };
    // The definition does the larger under sanitizers in some ten milliseconds. Most calls are small: they are many.
    const double most = s_.once_in(8) ? 4e5 : 5e4;
    if (work() > most) a_.H /= a_.Hkv, a_.Hkv = 1;
    if (work() > most) a_.B = std::min(a_.B, 1);
    if (work() > most) a_.H = std::min(a_.H, 1);
    while (work() > most) a_.D = (a_.D + 2) / 3, a_.Dv = (a_.Dv + 2) / 3, a_.Tk = a_.Tk * 2 / 3;
  }

  Type token_type(int32_t& width) {
    const Type type = s_.among(
        {Type::kFloat32, Type::kFloat32, Type::kFloat16, Type::kBfloat16, Type::kInt8, Type::kQ8_0, Type::kQ4_0});
    if (type == Type::kQ8_0 || type == Type::kQ4_0) width = (width + 31) / 32 * 32;
    return type;
  }

  void choose_types() {
    a_.q_type = s_.among({Type::kFloat32, Type::kFloat32, Type::kFloat16, Type::kBfloat16});
    a_.out_type = s_.coin() ? a_.q_type : s_.among({Type::kFloat32, Type::kFloat16, Type::kBfloat16});
    a_.k_type = token_type(a_.D);
    a_.v_type = s_.coin() ? token_type(a_.Dv) : Type::kFloat32;
  }

  Block integers(int32_t count, const std::function<int32_t()>& make, const int32_t*& pointer) {
    Block block(static_cast<size_t>(count) * 4);
    for (int32_t i = 0; i < count; ++i) block.as<int32_t>()[i] = make();
    pointer = block.as<int32_t>();
    return block;
  }
  Block numbers(int32_t count, const std::function<float()>& make, const float*& pointer) {
    Block block(static_cast<size_t>(count) * 4, 0, 4 * s_.pick(0, 3));
    for (int32_t i = 0; i < count; ++i) block.as<float>()[i] = make();
    pointer = block.as<float>();
    return block;
  }

  /// The first token of each item of packed sequences, one after the other with gaps.
  Block starts(const int32_t* lengths, const int32_t*& pointer) {
    int32_t next = s_.pick(0, 2), b = 0;
    return integers(
        a_.B,
        [&] {
          const int32_t start = next;
          next += lengths[b++] + s_.pick(0, 2);
          return start;
        },
        pointer);
  }

  void choose_lengths() {
    const bool packed_queries = s_.once_in(6), packed_keys = s_.once_in(6);
    if (packed_queries || s_.coin()) {
      call_.q_length = integers(a_.B, [&] { return s_.coin() ? a_.Tq : s_.pick(0, a_.Tq); }, a_.q_length);
    }
    if (packed_keys || s_.coin()) {
      call_.k_length = integers(a_.B, [&] { return s_.coin() ? a_.Tk : s_.pick(0, a_.Tk); }, a_.k_length);
    }
    if (packed_queries) call_.q_start = starts(a_.q_length, a_.q_start);
    if (packed_keys) call_.k_start = starts(a_.k_length, a_.k_start);
  }

  void choose_positions() {
    if (s_.coin()) {
      const bool far = s_.once_in(32);  // the ends of what check.js lets through
      const auto offset = [&] { return far ? s_.among({-(1 << 29), 1 << 29}) : s_.pick(-a_.Tq - 2, a_.Tk + 2); };
      call_.offset = integers(a_.B, offset, a_.offset);
    }
    const auto side = [&] { return s_.once_in(16) ? 1 << 29 : s_.pick(0, s_.coin() ? 4 : std::max(a_.Tk, a_.Tq)); };
    a_.left = s_.coin() ? -1 : side();
    a_.right = s_.coin() ? -1 : s_.coin() ? 0 : side();
    if (a_.left >= 0 && s_.coin()) a_.prefix = s_.pick(0, a_.Tk + 1);
    if (a_.prefix > 0 && s_.coin()) call_.gap = integers(a_.B, [&] { return s_.pick(0, 300); }, a_.gap);
  }

  void choose_weights() {
    a_.num_heads = a_.H, a_.num_rows = a_.Tq;
    a_.weights_stage = attention::Stage::kWeights;
    // Rows of packed sequences may not exist: their weights are asked for one sequence at a time.
    if (a_.q_start || a_.H == 0 || s_.coin()) return;
    a_.weights_stage = attention::Stage(s_.pick(0, 3));
    a_.weights_mean = s_.once_in(4);
    if (s_.coin()) a_.num_heads = s_.pick(1, a_.H);
    if (a_.num_heads < a_.H) call_.heads = distinct(a_.num_heads, a_.H, a_.heads);
    if (s_.coin()) a_.num_rows = s_.pick(0, a_.Tq);
    if (a_.num_rows < a_.Tq) call_.rows = distinct(a_.num_rows, a_.Tq, a_.rows);
    call_.sizes.weights = static_cast<size_t>(a_.B) * (a_.weights_mean ? 1 : a_.num_heads) * a_.num_rows * a_.Tk;
    a_.weights = kWanted;
  }

  /// `count` of the numbers below `size`, in a row that begins anywhere, backwards or not.
  Block distinct(int32_t count, int32_t size, const int32_t*& pointer) {
    int32_t next = s_.pick(0, size - 1);
    const int32_t step = s_.coin() ? 1 : size - 1;
    return integers(count, [&] { return std::exchange(next, (next + step) % size); }, pointer);
  }

  void choose_ring() {
    if (a_.k_start || !s_.once_in(4)) return;
    a_.ring_first = s_.pick(0, std::min(a_.Tk, 8));
    a_.ring_size = std::max(1, a_.Tk - a_.ring_first) + s_.pick(0, 3);
    call_.ring_start = integers(a_.B, [&] { return s_.pick(0, a_.ring_size - 1); }, a_.ring_start);
  }

  /// Token by token or head by head, without or with room between; inputs may be shared by the whole batch.
  Strides strides(int32_t heads, int32_t tokens, int32_t size, bool shareable) {
    const int32_t gap = s_.once_in(3) ? s_.pick(1, 5) : 0;
    Strides result;
    if (s_.coin()) {
      result = {heads * tokens * (size + gap), tokens * (size + gap), size + gap};
    } else {
      result = {tokens * heads * (size + gap), size + gap, heads * (size + gap)};
    }
    if (shareable && s_.once_in(8)) result.batch = 0;
    return result;
  }

  /// How many tokens there are from the first start to the last end.
  int32_t total(const int32_t* starts, const int32_t* lengths, int32_t longest) const {
    int32_t most = longest;
    for (int32_t b = 0; starts && b < a_.B; ++b) most = std::max(most, starts[b] + lengths[b]);
    return most;
  }

  void place_queries() {
    const auto [batch, head, token] = strides(a_.H, total(a_.q_start, a_.q_length, a_.Tq), a_.D, true);
    a_.q_batch = batch, a_.q_head = head, a_.q_token = token;
    ptrdiff_t end = 0;
    const auto each = [&](const std::function<void(ptrdiff_t)>& use) {
      for (int32_t b = 0; b < a_.B; ++b) {
        for (int32_t h = 0; h < a_.H; ++h) {
          for (int32_t i = 0; i < rows_of(a_, b); ++i) {
            use(attention::query_start(a_, b, h) + static_cast<ptrdiff_t>(i) * a_.q_token);
          }
        }
      }
    };
    each([&](ptrdiff_t row) { end = std::max(end, row + a_.D); });
    const size_t unit = attention::size_of(a_.q_type);
    call_.q = Block(end * unit, kNaN, unit * s_.pick(0, 3));
    a_.q = call_.q.data();
    each([&](ptrdiff_t row) {
      for (int32_t c = 0; c < a_.D; ++c) attention::store_value(call_.q.data(), a_.q_type, row + c, s_.value());
    });
  }

  void place_tokens(Type type, int32_t width, int32_t& batch, int32_t& head, int32_t& token, Block& block,
                    Block& scales, const void*& data, const float*& scale) {
    const bool quantised = attention::is_quantized(type);
    const int32_t rows = std::max(total(a_.k_start, a_.k_length, a_.Tk), a_.ring_first + a_.ring_size);
    const int32_t size = quantised ? static_cast<int32_t>(attention::token_bytes(type, width)) : width;
    const Strides places = strides(a_.Hkv, rows, size, true);
    batch = places.batch, head = places.head, token = places.token;
    a_.scale_head = rows, a_.scale_batch = a_.Hkv * rows;
    ptrdiff_t end = 0, scale_end = 0;
    const auto each = [&](const std::function<void(ptrdiff_t, ptrdiff_t)>& use) {
      for (int32_t b = 0; b < a_.B; ++b) {
        for (int32_t h = 0; h < a_.Hkv; ++h) {
          const attention::Tokens tokens{nullptr,
                                         nullptr,
                                         type,
                                         attention::token_start(a_.k_start, b, batch, h, head, token),
                                         token,
                                         width,
                                         a_.ring_first,
                                         a_.ring_size,
                                         a_.ring_size ? a_.ring_start[b] : 0};
          for (int32_t j = 0; j < keys_read(a_, b); ++j) {
            const ptrdiff_t row = tokens.row(j);
            use(tokens.first + row * token, static_cast<ptrdiff_t>(b) * a_.scale_batch + h * a_.scale_head + row);
          }
        }
      }
    };
    each([&](ptrdiff_t at, ptrdiff_t at_scale) {
      end = std::max(end, at + size);
      scale_end = std::max(scale_end, at_scale + 1);
    });
    const size_t unit = quantised ? 1 : attention::size_of(type);
    block = Block(end * unit, kNaN, unit * s_.pick(0, 3));
    data = block.data();
    if (type == Type::kInt8) scales = Block(scale_end * 4, kNaN, 4 * s_.pick(0, 3));
    if (type == Type::kInt8) scale = scales.as<float>();
    each([&](ptrdiff_t at, ptrdiff_t at_scale) {
      fill_token(type, width, block, at, scale ? scales.as<float>() + at_scale : nullptr);
    });
  }

  void fill_token(Type type, int32_t width, const Block& block, ptrdiff_t at, float* scale) {
    float values[256];
    for (int32_t c = 0; c < width; ++c) values[c] = s_.value();
    if (attention::is_quantized(type)) {
      attention::quantize_token(type, values, width, block.as<uint8_t>() + at, scale);
      return;
    }
    for (int32_t c = 0; c < width; ++c) attention::store_value(block.data(), type, at + c, values[c]);
  }

  void place_results() {
    const int32_t rows = total(a_.q_start, a_.q_length, a_.Tq);
    const auto [batch, head, token] = strides(a_.H, rows, a_.Dv, false);
    a_.out_batch = batch, a_.out_head = head, a_.out_token = token;
    a_.lse_head = rows + s_.pick(0, 1), a_.lse_batch = a_.q_start ? 0 : a_.H * a_.lse_head;
    const bool has_rows = a_.B > 0 && a_.H > 0 && rows > 0;
    if (!s_.once_in(16)) {
      a_.out = kWanted;
      const ptrdiff_t last = a_.q_start ? 0 : static_cast<ptrdiff_t>(a_.B - 1) * batch;
      call_.sizes.out =
          has_rows ? last + static_cast<ptrdiff_t>(a_.H - 1) * head + static_cast<ptrdiff_t>(rows - 1) * token + a_.Dv
                   : 0;
    }
    if (s_.coin()) {
      a_.lse = kWanted;
      const ptrdiff_t last = a_.q_start ? 0 : static_cast<ptrdiff_t>(a_.B - 1) * a_.lse_batch;
      call_.sizes.lse = has_rows ? last + static_cast<ptrdiff_t>(a_.H - 1) * a_.lse_head + rows : 0;
    }
  }

  void choose_mask() {
    a_.mask_kind = attention::MaskKind(s_.pick(0, 2));
    if (a_.mask_kind == attention::MaskKind::kNone) return;
    int32_t size = 1;
    const auto axis = [&](int32_t length) {
      if (!s_.coin()) return 0;
      return std::exchange(size, size * length);
    };
    a_.mask_key = axis(a_.Tk), a_.mask_row = axis(a_.Tq), a_.mask_head = axis(a_.H), a_.mask_batch = axis(a_.B);
    const bool boolean = a_.mask_kind == attention::MaskKind::kBoolean;
    call_.mask = Block(static_cast<size_t>(size) * (boolean ? 1 : 4), 0, (boolean ? 1 : 4) * s_.pick(0, 3));
    a_.mask = call_.mask.data();
    // In runs, so that there are tiles of nothing and of everything.
    const uint64_t longest = s_.among({1, 3, 90, 300}), lowest = s_.once_in(4) ? 1 : 0;
    bool hidden = s_.coin();
    for (int32_t i = 0, left = 0; i < size; ++i, --left) {
      if (left <= 0) {
        hidden = !hidden;
        left = static_cast<int32_t>(1 + s_.bits() % longest);
      }
      if (boolean) {
        call_.mask.as<uint8_t>()[i] = hidden ? 0 : static_cast<uint8_t>(1 + s_.bits() % 255);
      } else {
        const float least = lowest ? std::numeric_limits<float>::lowest() : -kInfinity;
        call_.mask.as<float>()[i] = hidden ? least : s_.value();
      }
    }
  }

  void choose_logits() {
    a_.scale = s_.coin() ? 1 / std::sqrt(static_cast<float>(a_.D)) : s_.among({0.0f, -0.3f, 1.0f, 2.0f});
    a_.softcap = s_.among({0.0f, 0.0f, 0.5f, 30.0f});
    a_.precision = attention::Precision(s_.once_in(8));
    if (s_.once_in(3)) call_.alibi = numbers(a_.H, [&] { return s_.value(); }, a_.alibi);
    if (s_.once_in(3)) {
      call_.sinks = numbers(a_.H, [&] { return s_.once_in(4) ? -kInfinity : 2 * s_.value(); }, a_.sinks);
    }
  }

  static inline float wanted_ = 0;
  static constexpr float* kWanted = &wanted_;  // not null: the result is asked for; run() says where it goes

  Source& s_;
  Call call_;
  Attention& a_;
};

}  // namespace

Call make_call(Source& source) { return Maker(source).make(); }

int32_t rows_of(const Attention& call, int32_t b) { return call.q_start ? call.q_length[b] : call.Tq; }

int32_t keys_read(const Attention& call, int32_t b) {
  const bool all = call.weights && call.weights_stage < attention::Stage::kMasked && !call.k_start;
  return all || !call.k_length ? call.Tk : call.k_length[b];
}

void print(const Call& call) {
  const Attention& a = call.args;
  std::printf("  B %d H %d Hkv %d Tq %d Tk %d D %d Dv %d; types %d %d %d -> %d\n", a.B, a.H, a.Hkv, a.Tq, a.Tk, a.D,
              a.Dv, int(a.q_type), int(a.k_type), int(a.v_type), int(a.out_type));
  std::printf("  window [%d, %d] prefix %d ring %d + %d; scale %g softcap %g precision %d; mask %d [%d, %d, %d, %d]\n",
              a.left, a.right, a.prefix, a.ring_first, a.ring_size, double(a.scale), double(a.softcap),
              int(a.precision), int(a.mask_kind), a.mask_batch, a.mask_head, a.mask_row, a.mask_key);
  std::printf("  alibi %d sinks %d starts %d %d; weights %d: stage %d mean %d\n", a.alibi != nullptr,
              a.sinks != nullptr, a.q_start != nullptr, a.k_start != nullptr, a.weights != nullptr,
              int(a.weights_stage), a.weights_mean);
  for (int32_t b = 0; b < a.B; ++b) {
    std::printf("  item %d: offset %d lengths %d %d\n", b, a.offset ? a.offset[b] : 0,
                a.q_length ? a.q_length[b] : a.Tq, a.k_length ? a.k_length[b] : a.Tk);
  }
}

}  // namespace host
