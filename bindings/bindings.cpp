// The names that JavaScript sees. A call is one pointer to a struct of attention.h; JavaScript fills it by field name,
// from the tables of fields.h, so that no offset is kept by hand on the other side.
#include <emscripten/bind.h>
#include <malloc.h>

#include <cstdlib>

#include "attention.h"
#include "fields.h"

// embind's header calls this behind each block of bindings, for workers, which here call no binding. The rest of its
// library is types that no function takes: see embind.library.js.
extern "C" void emscripten::internal::_embind_register_bindings(InitFunc*) {}

namespace attention {
namespace {

struct Layout {
  const char* name;  // null ends the list
  int32_t size;
  const Field* fields;
};

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
                           layout<Embedding>("Embedding", kEmbedding),
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
