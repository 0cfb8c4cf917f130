// The names that JavaScript sees. A call is one pointer to a struct of attention.h; JavaScript fills it by field name,
// from the tables below, so that no offset is kept by hand on the other side.
#include <emscripten/bind.h>
#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <type_traits>

#include "attention.h"

namespace attention {
namespace {

struct Field {
  const char* name;  // null ends a table
  int32_t offset;
  int32_t is_float;
};

struct Layout {
  const char* name;  // null ends the list
  int32_t size;
  const Field* fields;
};

// offsetof needs a name and a table needs its spelling: only a macro gives both.
#define FIELD(Struct, field) {#field, offsetof(Struct, field), std::is_same_v<decltype(Struct::field), float>}

#define F(field) FIELD(Attention, field)
const Field kAttention[] = {F(B),
                            F(H),
                            F(Hkv),
                            F(Tq),
                            F(Tk),
                            F(D),
                            F(Dv),
                            F(q_type),
                            F(k_type),
                            F(v_type),
                            F(out_type),
                            F(q),
                            F(k),
                            F(v),
                            F(out),
                            F(q_batch),
                            F(q_head),
                            F(q_token),
                            F(k_batch),
                            F(k_head),
                            F(k_token),
                            F(v_batch),
                            F(v_head),
                            F(v_token),
                            F(out_batch),
                            F(out_head),
                            F(out_token),
                            F(q_start),
                            F(k_start),
                            F(q_length),
                            F(k_length),
                            F(offset),
                            F(left),
                            F(right),
                            F(prefix),
                            F(ring_first),
                            F(ring_size),
                            F(ring_start),
                            F(k_scale),
                            F(v_scale),
                            F(scale_batch),
                            F(scale_head),
                            F(scale),
                            F(softcap),
                            F(mask_kind),
                            F(mask),
                            F(mask_batch),
                            F(mask_head),
                            F(mask_row),
                            F(mask_key),
                            F(alibi),
                            F(sinks),
                            F(lse),
                            F(lse_batch),
                            F(lse_head),
                            F(weights),
                            F(weights_mean),
                            F(weights_stage),
                            F(heads),
                            F(rows),
                            F(num_heads),
                            F(num_rows),
                            F(scratch),
                            {}};
#undef F
#define F(field) FIELD(Append, field)
const Field kAppend[] = {
    F(B),     F(H),           F(T),          F(width),      F(from_type),  F(to_type),   F(from),
    F(to),    F(from_batch),  F(from_head),  F(from_token), F(to_batch),   F(to_head),   F(to_token),
    F(scale), F(scale_batch), F(scale_head), F(first),      F(ring_first), F(ring_size), {}};
#undef F
#define F(field) FIELD(Norm, field)
const Field kNorm[] = {F(rows), F(width), F(kind), F(epsilon), F(x), F(weight), F(bias), F(out), {}};
#undef F
#define F(field) FIELD(Activation, field)
const Field kActivation[] = {F(count), F(kind), F(x), F(gate), F(out), {}};
#undef F
#define F(field) FIELD(Merge, field)
const Field kMerge[] = {F(parts), F(B), F(H), F(Tq), F(Dv), F(outs), F(lses), F(sinks), F(out), F(lse), {}};
#undef F
#define F(field) FIELD(Rope, field)
const Field kRope[] = {F(B),         F(H),   F(T),       F(D),           F(rotary),  F(style),     F(type),
                       F(x),         F(out), F(x_batch), F(x_head),      F(x_token), F(out_batch), F(out_head),
                       F(out_token), F(cos), F(sin),     F(table_batch), {}};
#undef F
#define F(field) FIELD(Linear, field)
const Field kLinear[] = {F(M),      F(N),      F(K),    F(x_row), F(out_row), F(x),
                         F(weight), F(packed), F(bias), F(out),   F(scratch), {}};
#undef F

// Every field takes four bytes, so a forgotten one shows in the count.
template <typename Struct, size_t count>
constexpr Layout layout(const char* name, const Field (&fields)[count]) {
  static_assert((count - 1) * 4 == sizeof(Struct));
  return {name, sizeof(Struct), fields};
}
const Layout kLayouts[] = {layout<Attention>("Attention", kAttention),
                           layout<Append>("Append", kAppend),
                           layout<Merge>("Merge", kMerge),
                           layout<Rope>("Rope", kRope),
                           layout<Linear>("Linear", kLinear),
                           layout<Norm>("Norm", kNorm),
                           layout<Activation>("Activation", kActivation),
                           {}};

template <auto function, typename Call>
auto call(uintptr_t pointer) {
  return function(*reinterpret_cast<const Call*>(pointer));
}
template <typename Value>
Value* to(uintptr_t pointer) {
  return reinterpret_cast<Value*>(pointer);
}

EMSCRIPTEN_BINDINGS(attention) {
  using emscripten::function;
  function("_layouts", +[] { return reinterpret_cast<uintptr_t>(kLayouts); });
  function("_allocate", +[](size_t bytes) { return reinterpret_cast<uintptr_t>(memalign(16, bytes)); });
  function("_release", +[](uintptr_t pointer) { std::free(to<void>(pointer)); });
  function("_usedBytes", +[] { return size_t(mallinfo().uordblks); });
  function("_attentionScratch", &call<attention_scratch, Attention>);
  function("_attention", &call<attention, Attention>);
  function("_append", &call<append, Append>);
  function("_tokenBytes", +[](int32_t type, int32_t width) { return token_bytes(Type(type), width); });
  function("_merge", &call<merge, Merge>);
  function("_norm", &call<norm, Norm>);
  function("_activation", &call<activation, Activation>);
  function("_rope", &call<rope, Rope>);
  function("_linearScratch", &call<linear_scratch, Linear>);
  function("_linear", &call<linear, Linear>);
  function("_packedLinearSize", &packed_linear_size);
  function(
      "_packLinear", +[](uintptr_t weight, int32_t N, int32_t K, uintptr_t packed) {
        pack_linear(to<const float>(weight), N, K, to<float>(packed));
      });
  function(
      "_convert", +[](uintptr_t from, int32_t from_type, uintptr_t into, int32_t type, size_t count) {
        convert(to<const void>(from), Type(from_type), to<void>(into), Type(type), count);
      });
  function("_setThreads", &set_threads);
  function("_threads", &threads);
}

}  // namespace
}  // namespace attention
