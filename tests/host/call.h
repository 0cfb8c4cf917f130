// A random call of attention() with everything it points to, and what must hold for it.
#pragma once

#include <vector>

#include "results.h"
#include "source.h"

namespace host {

struct Call {
  attention::Attention args{};
  Sizes sizes{};
  Block q, k, v, q_start, k_start, q_length, k_length, offset, gap, ring_start, k_scale, v_scale, mask, alibi, sinks,
      heads, rows;
};

/// Any valid call: all shapes, options and types, few of them at their usual values. Arrays end at the last element
/// that a kernel may read; whatever lies between the others reads as NaN.
Call make_call(Source& source);

/// The part of it that comes once sizes, types, lengths and the ring are chosen: tensors, their strides and numbers.
void place_arrays(Call& call, Source& source);

/// Not null: the result is asked for. run() says where it goes.
inline float wanted = 0;
constexpr float* kWanted = &wanted;

/// The same attention without anything but an additive mask: float32, one token behind the other, every rule of what
/// is visible and every bias written into the mask.
Call straighten(const Call& call);

void print(const Call& call);

/// Whether row i of item b and head h may see key j, by the words of attention.h.
bool sees(const attention::Attention& call, int32_t b, int32_t h, int32_t i, int32_t j);

/// How many rows of an item are there.
int32_t rows_of(const attention::Attention& call, int32_t b);

/// How many keys of an item are read: those within its length, or all for logits before the masks.
int32_t keys_read(const attention::Attention& call, int32_t b);

/// The kernels that ship against the definition, of the call and of its straight form; then with NaN, infinity or 1e38
/// in one key or value: rows that don't see it must keep every bit. Prints the first difference.
bool check_call(Source& source);

}  // namespace host
