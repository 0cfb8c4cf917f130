// The names that JavaScript sees. A call is one pointer to a struct of attention.h.
#include <emscripten/bind.h>

#include "attention.h"
#include "fields.h"
#include "heap.h"

// embind's header calls this behind each block of bindings, for workers, which here call no binding. The rest of its
// library is types that no function takes: see embind.library.js.
extern "C" void emscripten::internal::_embind_register_bindings(InitFunc*) {}

namespace attention {
namespace {

// JavaScript writes a struct as a row of words: every field takes four bytes, and fields.h, which JavaScript's own
// names are held against, has all of them in their order.
template <typename Struct, size_t count>
constexpr bool is_row_of(const Field (&fields)[count]) {
  for (size_t n = 0; n + 1 < count; ++n) {
    if (fields[n].offset != static_cast<int32_t>(4 * n)) return false;
  }
  return sizeof(Struct) == 4 * (count - 1) && sizeof(Struct) <= 512;  // kStructBytes of structs.js
}
static_assert(is_row_of<Attention>(kAttention) && is_row_of<Append>(kAppend) && is_row_of<Merge>(kMerge) &&
              is_row_of<Rope>(kRope) && is_row_of<Linear>(kLinear) && is_row_of<Embedding>(kEmbedding) &&
              is_row_of<Norm>(kNorm) && is_row_of<Activation>(kActivation));

Heap heap;

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
  function("_allocate", +[](size_t bytes) { return reinterpret_cast<uintptr_t>(heap.allocate(bytes)); });
  function("_release", +[](uintptr_t pointer) { heap.release(to<void>(pointer)); });
  function("_usedBytes", +[] { return heap.used(); });
  function("_dotOfBytes", &dot_of_bytes);
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
  function("_embedding", &call<embedding, Embedding>);
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
