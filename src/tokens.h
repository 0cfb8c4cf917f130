// Keys and values as float32 rows, whatever type and place they are kept in.
#pragma once

#include "convert.h"
#include "layout.h"
#include "tile.h"

namespace attention {

/// Whether rows of tokens have to be brought together in a buffer.
inline bool needs_buffer(Type type, int32_t ring_size) { return type != Type::kFloat32 || ring_size != 0; }

/// Tokens j..j+count-1: in place where they are float32 in neighbouring rows, else in `buffer` [count][width].
FloatRows token_rows(const Tokens& tokens, int32_t j, int32_t count, float* buffer);

/// Query rows into lanes, scaled, and rounded where the keys are quantised. `buffer` [count][D] may be where they are.
void queries_to_lanes(const Attention& call, const float* rows[kLanes], int32_t count, float* buffer, float* lanes);

}  // namespace attention
