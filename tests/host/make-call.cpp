#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "call.h"

namespace host {

namespace {

using attention::Attention;
using attention::Type;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
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
    place_arrays(call_, s_);
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

  void choose_mask() {
    a_.mask_kind = attention::MaskKind(s_.pick(0, 2));
    if (a_.mask_kind == attention::MaskKind::kNone) return;
    int32_t size = 1;
    const auto axis = [&](int32_t length) {
      if (!s_.coin()) return 0;
      return std::exchange(size, size * length);
    };
    const bool transposed = s_.once_in(8);
    if (transposed) a_.mask_row = axis(a_.Tq);
    a_.mask_key = axis(a_.Tk);
    if (!transposed) a_.mask_row = axis(a_.Tq);
    a_.mask_head = axis(a_.H), a_.mask_batch = axis(a_.B);
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

  Source& s_;
  Call call_;
  Attention& a_;
};

}  // namespace

Call make_call(Source& source) { return Maker(source).make(); }

}  // namespace host
