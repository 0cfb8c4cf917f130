// Where the tensors of a random call stand, and what they hold.
#include <algorithm>
#include <functional>

#include "call.h"
#include "half.h"
#include "layout.h"
#include "quantize.h"

namespace host {

namespace {

using attention::Attention;
using attention::Type;

constexpr unsigned char kNaN = 0xff;  // repeated: a NaN in every floating-point type

struct Strides {
  int32_t batch, head, token;
};

/// The fields of the keys or of the values.
struct TokenArrays {
  Type type;
  int32_t width;
  int32_t &batch, &head, &token;
  Block &block, &scales;
  const void*& data;
  const float*& scale;
};

class Placer {
 public:
  Placer(Call& call, Source& source) : s_(source), call_(call), a_(call.args) {}

  void run() {
    place_queries();
    place_tokens({a_.k_type, a_.D, a_.k_batch, a_.k_head, a_.k_token, call_.k, call_.k_scale, a_.k, a_.k_scale});
    place_tokens({a_.v_type, a_.Dv, a_.v_batch, a_.v_head, a_.v_token, call_.v, call_.v_scale, a_.v, a_.v_scale});
    place_results();
  }

 private:
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

  void place_tokens(const TokenArrays& to) {
    const Type type = to.type;
    const bool quantised = attention::is_quantized(type);
    const int32_t rows = std::max(total(a_.k_start, a_.k_length, a_.Tk), a_.ring_first + a_.ring_size);
    const int32_t size = quantised ? static_cast<int32_t>(attention::token_bytes(type, to.width)) : to.width;
    const Strides places = strides(a_.Hkv, rows, size, true);
    to.batch = places.batch, to.head = places.head, to.token = places.token;
    a_.scale_head = rows, a_.scale_batch = a_.Hkv * rows;
    ptrdiff_t end = 0, scale_end = 0;
    const auto each = [&](const std::function<void(ptrdiff_t, ptrdiff_t)>& use) {
      for (int32_t b = 0; b < a_.B; ++b) {
        for (int32_t h = 0; h < a_.Hkv; ++h) {
          const attention::Tokens tokens{nullptr,
                                         nullptr,
                                         type,
                                         attention::token_start(a_.k_start, b, to.batch, h, to.head, to.token),
                                         to.token,
                                         to.width,
                                         a_.ring_first,
                                         a_.ring_size,
                                         a_.ring_size ? a_.ring_start[b] : 0};
          for (int32_t j = 0; j < keys_read(a_, b); ++j) {
            const ptrdiff_t row = tokens.row(j);
            use(tokens.first + row * to.token, static_cast<ptrdiff_t>(b) * a_.scale_batch + h * a_.scale_head + row);
          }
        }
      }
    };
    each([&](ptrdiff_t at, ptrdiff_t at_scale) {
      end = std::max(end, at + size);
      scale_end = std::max(scale_end, at_scale + 1);
    });
    const size_t unit = quantised ? 1 : attention::size_of(type);
    to.block = Block(end * unit, kNaN, unit * s_.pick(0, 3));
    to.data = to.block.data();
    if (type == Type::kInt8) to.scales = Block(scale_end * 4, kNaN, 4 * s_.pick(0, 3));
    if (type == Type::kInt8) to.scale = to.scales.as<float>();
    each([&](ptrdiff_t at, ptrdiff_t at_scale) {
      fill_token(type, to.width, to.block, at, to.scale ? to.scales.as<float>() + at_scale : nullptr);
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

  Source& s_;
  Call& call_;
  Attention& a_;
};

}  // namespace

void place_arrays(Call& call, Source& source) { Placer(call, source).run(); }

}  // namespace host
