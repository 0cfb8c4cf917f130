// The structs of attention.h as tables of their fields: for the tests of the kernels outside wasm, which fill them by
// name, and for the order that JavaScript fills them in (bindings.cpp, tests/structs.test.js).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "attention.h"

namespace attention {

struct Field {
  const char* name;  // null ends a table
  int32_t offset;
  int32_t is_float;
};

// offsetof needs a name and a table needs its spelling: only a macro gives both.
#define FIELD(Struct, field) {#field, offsetof(Struct, field), std::is_same_v<decltype(Struct::field), float>}

#define F(field) FIELD(Attention, field)
inline constexpr Field kAttention[] = {
    F(B),          F(H),         F(Hkv),        F(Tq),       F(Tk),           F(D),
    F(Dv),         F(q_type),    F(k_type),     F(v_type),   F(out_type),     F(q),
    F(k),          F(v),         F(out),        F(q_batch),  F(q_head),       F(q_token),
    F(k_batch),    F(k_head),    F(k_token),    F(v_batch),  F(v_head),       F(v_token),
    F(out_batch),  F(out_head),  F(out_token),  F(q_start),  F(k_start),      F(q_length),
    F(k_length),   F(offset),    F(left),       F(right),    F(prefix),       F(gap),
    F(ring_first), F(ring_size), F(ring_start), F(k_scale),  F(v_scale),      F(scale_batch),
    F(scale_head), F(precision), F(scale),      F(softcap),  F(mask_kind),    F(mask),
    F(mask_batch), F(mask_head), F(mask_row),   F(mask_key), F(alibi),        F(sinks),
    F(lse),        F(lse_batch), F(lse_head),   F(weights),  F(weights_mean), F(weights_stage),
    F(heads),      F(rows),      F(num_heads),  F(num_rows), F(scratch),      {}};
#undef F
#define F(field) FIELD(Append, field)
inline constexpr Field kAppend[] = {
    F(B),          F(H),         F(T),          F(width),      F(from_type), F(to_type),  F(from),  F(to),
    F(from_batch), F(from_head), F(from_token), F(to_batch),   F(to_head),   F(to_token), F(scale), F(scale_batch),
    F(scale_head), F(first),     F(length),     F(ring_first), F(ring_size), {}};
#undef F
#define F(field) FIELD(Norm, field)
inline constexpr Field kNorm[] = {F(rows), F(width), F(kind), F(epsilon), F(x), F(weight), F(bias), F(out), {}};
#undef F
#define F(field) FIELD(Activation, field)
inline constexpr Field kActivation[] = {F(count), F(kind), F(x), F(gate), F(out), {}};
#undef F
#define F(field) FIELD(Merge, field)
inline constexpr Field kMerge[] = {F(parts), F(B), F(H), F(Tq), F(Dv), F(outs), F(lses), F(sinks), F(out), F(lse), {}};
#undef F
#define F(field) FIELD(Rope, field)
inline constexpr Field kRope[] = {F(B),      F(H),       F(T),           F(D),        F(rotary),
                                  F(style),  F(type),    F(x),           F(out),      F(x_batch),
                                  F(x_head), F(x_token), F(out_batch),   F(out_head), F(out_token),
                                  F(cos),    F(sin),     F(table_batch), {}};
#undef F
#define F(field) FIELD(Linear, field)
inline constexpr Field kLinear[] = {F(M),      F(N),    F(K),        F(x_row), F(out_row), F(x), F(weight),
                                    F(packed), F(bias), F(residual), F(out),   F(scratch), {}};
#undef F
#define F(field) FIELD(Embedding, field)
inline constexpr Field kEmbedding[] = {F(T),      F(width),  F(vocabulary), F(type), F(table),
                                       F(packed), F(tokens), F(positions),  F(out),  {}};
#undef F
#undef FIELD

}  // namespace attention
