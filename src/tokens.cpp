// Keys and values as float32 rows: conversion, dequantisation, and the seam of a ring.
//   Cost: one read and one write a value that is not used in place; x = d q for the quantised ones.
#include "tokens.h"

#include <algorithm>

#include "numbers.h"
#include "simd.h"

namespace attention {

namespace {

void dequantize_row(const Tokens& tokens, int32_t row, float* out) {
  for (int32_t block = 0; block < blocks_of(tokens.width); ++block) {
    const v128_t scale = wasm_f32x4_splat(block_scale(tokens, row, block));
    const int32_t width = tokens.width - kBlockValues * block;
    alignas(16) int8_t numbers[kBlockValues];
    load_numbers(tokens.type, token_block(tokens, row, block), numbers);
#pragma clang loop unroll(disable)
    for (int32_t c = 0; c < kBlockValues && c < width; c += 4) {
      const v128_t four = wasm_i32x4_extend_low_i16x8(wasm_i16x8_extend_low_i8x16(wasm_v128_load32_zero(numbers + c)));
      store_lanes(out + kBlockValues * block + c, wasm_f32x4_mul(scale, wasm_f32x4_convert_i32x4(four)), width - c);
    }
  }
}

void copy_rows(const Tokens& tokens, int32_t row, int32_t count, float* out) {
  for (int32_t i = 0; i < count; ++i, out += tokens.width) {
    if (is_quantized(tokens.type)) {
      dequantize_row(tokens, row + i, out);
    } else {
      const ptrdiff_t from = (tokens.first + (row + i) * tokens.stride) * static_cast<ptrdiff_t>(size_of(tokens.type));
      convert(static_cast<const char*>(tokens.data) + from, tokens.type, out, Type::kFloat32, tokens.width);
    }
  }
}

}  // namespace

FloatRows token_rows(const Tokens& tokens, int32_t j, int32_t count, float* buffer) {
  if (tokens.type == Type::kFloat32 && tokens.run(j, count) == count) {
    return {static_cast<const float*>(tokens.data) + tokens.first + tokens.row(j) * tokens.stride, tokens.stride};
  }
  for (int32_t done = 0; done < count;) {
    const int32_t run = tokens.run(j + done, count - done);
    copy_rows(tokens, tokens.row(j + done), run, buffer + static_cast<ptrdiff_t>(done) * tokens.width);
    done += run;
  }
  return {buffer, tokens.width};
}

void queries_to_lanes(const Attention& call, const float* rows[kLanes], int32_t count, float* buffer, float* lanes) {
  if (!is_quantized(call.k_type)) return rows_to_lanes(rows, call.D, call.scale, lanes);
  const float* rounded[kLanes];
  for (int32_t lane = 0; lane < kLanes; ++lane) {
    float* row = buffer + static_cast<ptrdiff_t>(std::min(lane, count - 1)) * call.D;
    rounded[lane] = row;
    if (lane >= count) continue;
    for (int32_t c = 0; c < call.D; ++c) row[c] = call.scale * rows[lane][c];
    round_to_16_bits(row, call.D);
  }
  rows_to_lanes(rounded, call.D, 1, lanes);
}

}  // namespace attention
