// Small calls of the kernels, one by name, for callgrind to count: `measured` alone is looked at.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "attention.h"

namespace {

/// Numbers of mean 0 and deviation 1, the same on every machine.
std::vector<float> numbers(size_t count, uint32_t state) {
  std::vector<float> values(count);
  for (float& value : values) {
    state = state * 1664525 + 1013904223;
    value = (static_cast<float>(state >> 8) / (1 << 24) - 0.5f) * 3.4641016f;
  }
  return values;
}

struct Call {
  attention::Attention attention{};
  attention::Linear linear{};
};

}  // namespace

/// What callgrind's --toggle-collect names.
extern "C" [[gnu::noinline]] void measured(const Call& call) {
  if (call.linear.M > 0) {
    attention::linear(call.linear);
  } else {
    attention::attention(call.attention);
  }
}

namespace {

void attend(int32_t H, int32_t Hkv, int32_t Tq, int32_t Tk, int32_t D) {
  const auto q = numbers(size_t(H) * Tq * D, 1);
  const auto k = numbers(size_t(Hkv) * Tk * D, 2);
  const auto v = numbers(size_t(Hkv) * Tk * D, 3);
  std::vector<float> out(q.size());
  const int32_t offset = Tk - Tq;
  Call call;
  attention::Attention& a = call.attention;
  a.B = 1, a.H = H, a.Hkv = Hkv, a.Tq = Tq, a.Tk = Tk, a.D = D, a.Dv = D;
  a.q = q.data(), a.k = k.data(), a.v = v.data(), a.out = out.data();
  a.q_token = a.k_token = a.v_token = a.out_token = D;
  a.q_head = a.out_head = Tq * D, a.k_head = a.v_head = Tk * D;
  a.q_batch = a.out_batch = H * Tq * D, a.k_batch = a.v_batch = Hkv * Tk * D;
  a.left = -1, a.right = 0, a.offset = &offset;
  a.scale = 1 / std::sqrt(float(D));
  std::vector<char> scratch(attention::attention_scratch(a) + 16);
  a.scratch = scratch.data() + (-reinterpret_cast<uintptr_t>(scratch.data()) & 15);
  measured(call);
}

void multiply(int32_t M, int32_t N, int32_t K) {
  const auto x = numbers(size_t(M) * K, 1);
  const auto weight = numbers(size_t(N) * K, 2);
  std::vector<float> packed(attention::packed_linear_size(N, K));
  std::vector<float> out(size_t(M) * N);
  attention::pack_linear(weight.data(), N, K, packed.data());
  Call call;
  attention::Linear& l = call.linear;
  l.M = M, l.N = N, l.K = K, l.x_row = K, l.out_row = N;
  l.x = x.data(), l.packed = packed.data(), l.out = out.data();
  std::vector<char> scratch(attention::linear_scratch(l) + 16);
  l.scratch = scratch.data() + (-reinterpret_cast<uintptr_t>(scratch.data()) & 15);
  measured(call);
}

}  // namespace

int main(int count, char** arguments) {
  const char* name = count == 2 ? arguments[1] : "";
  if (std::strcmp(name, "prefill") == 0) {
    attend(2, 2, 256, 256, 64);
  } else if (std::strcmp(name, "grouped") == 0) {
    attend(4, 1, 128, 128, 128);
  } else if (std::strcmp(name, "decode") == 0) {
    attend(8, 2, 1, 2048, 128);
  } else if (std::strcmp(name, "linear") == 0) {
    multiply(128, 256, 256);
  } else if (std::strcmp(name, "small") == 0) {
    attend(4, 4, 32, 32, 16);
  } else {
    std::fprintf(stderr, "usage: instructions prefill|grouped|decode|linear|small\n");
    return 1;
  }
  return 0;
}
