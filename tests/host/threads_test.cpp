// The parallel loops on real threads, for the thread sanitizer: calls that are large enough to wake the pool, with 1, 2
// and 4 threads, one right after another. The bits must be the same.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "attention.h"
#include "results.h"
#include "source.h"

namespace {

using attention::Attention;
using attention::Type;
using host::Block;

host::Source numbers(nullptr, 0);

Block random_floats(size_t count) {
  Block block(count * 4);
  for (size_t i = 0; i < count; ++i) block.as<float>()[i] = numbers.value();
  return block;
}

struct Shape {
  const char* name;
  int32_t B, H, Hkv, Tq, Tk, D, Dv;
  int32_t right;
};

/// Attention with all results at once: output, log-sum-exp, and the weights of every head, or their mean.
std::vector<Block> attend(const Shape& s, bool mean) {
  static const Block q = random_floats(1 << 18), k = random_floats(1 << 18), v = random_floats(1 << 18);
  Attention call{};
  call.B = s.B, call.H = s.H, call.Hkv = s.Hkv, call.Tq = s.Tq, call.Tk = s.Tk, call.D = s.D, call.Dv = s.Dv;
  call.q = q.data(), call.k = k.data(), call.v = v.data();
  call.q_token = s.D, call.q_head = s.Tq * s.D, call.q_batch = s.H * s.Tq * s.D;
  call.k_token = s.D, call.k_head = s.Tk * s.D, call.k_batch = s.Hkv * s.Tk * s.D;
  call.v_token = s.Dv, call.v_head = s.Tk * s.Dv, call.v_batch = s.Hkv * s.Tk * s.Dv;
  call.out_token = s.Dv, call.out_head = s.Tq * s.Dv, call.out_batch = s.H * s.Tq * s.Dv;
  call.lse_head = s.Tq, call.lse_batch = s.H * s.Tq;
  const std::vector<int32_t> offset(s.B, s.Tk - s.Tq);
  call.offset = offset.data();
  call.left = -1, call.right = s.right;
  call.scale = 1 / std::sqrt(static_cast<float>(s.D));
  call.weights_stage = attention::Stage::kWeights;
  call.num_heads = s.H, call.num_rows = s.Tq, call.weights_mean = mean;
  float wanted = 0;
  call.out = call.lse = call.weights = &wanted;
  const size_t rows = static_cast<size_t>(s.B) * s.H * s.Tq;
  host::Results results = host::run(call, {rows * s.Dv, rows, (mean ? rows / s.H : rows) * s.Tk}, host::Which::kFast);
  std::vector<Block> blocks;
  for (Block* block : {&results.out, &results.lse, &results.weights}) blocks.push_back(std::move(*block));
  return blocks;
}

std::vector<Block> multiply(bool packed) {
  static const Block x = random_floats(1 << 15), weight = random_floats(1 << 15), bias = random_floats(256);
  attention::Linear call{150, 200, 120, 120, 200, x.as<float>(), weight.as<float>(), {}, bias.as<float>(), {}, {}, {}};
  const Block together(attention::packed_linear_size(call.N, call.K) * 4);
  attention::pack_linear(call.weight, call.N, call.K, together.as<float>());
  if (packed) call.packed = together.as<float>(), call.weight = nullptr;
  std::vector<Block> blocks;
  blocks.emplace_back(size_t(call.M) * call.N * 4);
  const Block scratch(attention::linear_scratch(call));
  call.out = blocks[0].as<float>(), call.scratch = scratch.data();
  attention::linear(call);
  return blocks;
}

std::vector<Block> turn() {
  static const Block x = random_floats(1 << 20), angles = random_floats(1 << 14);
  attention::Rope call{1,       8,  1024, 64,      32, attention::RopeStyle::kHalf, Type::kFloat32,     x.data(), {}, 0,
                       1 << 16, 64, 0,    1 << 16, 64, angles.as<float>(),          angles.as<float>(), 0};
  std::vector<Block> blocks;
  blocks.emplace_back(x.bytes());
  call.out = blocks[0].data();
  attention::rope(call);
  return blocks;
}

std::vector<Block> normalise() {
  static const Block x = random_floats(1 << 18);
  std::vector<Block> blocks;
  for (const auto kind : {attention::NormKind::kRms, attention::NormKind::kLayer, attention::NormKind::kSoftmax}) {
    blocks.emplace_back(x.bytes());
    attention::norm({1 << 10, 1 << 8, kind, 1e-5f, x.as<float>(), {}, {}, blocks.back().as<float>()});
  }
  blocks.emplace_back(x.bytes());
  attention::activation({1 << 18, attention::ActivationKind::kGelu, x.as<float>(), {}, blocks.back().as<float>()});
  return blocks;
}

std::vector<Block> join() {
  static const Block outs = random_floats(1 << 20), lses = random_floats(1 << 14);
  std::vector<Block> blocks;
  blocks.emplace_back(outs.bytes() / 4);
  blocks.emplace_back(lses.bytes() / 4);
  attention::merge(
      {4, 1, 8, 512, 64, outs.as<float>(), lses.as<float>(), {}, blocks[0].as<float>(), blocks[1].as<float>()});
  return blocks;
}

std::vector<Block> store() {
  static const Block x = random_floats(1 << 20);
  static const int32_t first = 3;
  std::vector<Block> blocks;
  const int32_t token = static_cast<int32_t>(attention::token_bytes(Type::kInt8, 64)), rows = 1 << 11;
  blocks.emplace_back(size_t(8) * rows * token);
  blocks.emplace_back(size_t(8) * rows * 4);
  attention::Append call{};
  call.B = 1, call.H = 8, call.T = rows - first, call.width = 64, call.to_type = Type::kInt8;
  call.from = x.data(), call.from_head = 1 << 17, call.from_token = 64;
  call.to = blocks[0].data(), call.to_head = rows * token, call.to_token = token;
  call.scale = blocks[1].as<float>(), call.scale_head = rows, call.first = &first;
  attention::append(call);
  return blocks;
}

struct Loop {
  const char* name;
  std::function<std::vector<Block>()> run;
};

std::vector<Loop> loops() {
  // Tq, Tk and heads that split unevenly; the decoding one into several chunks of keys.
  const Shape prefill{"prefill", 2, 3, 1, 101, 103, 20, 12, 0}, decode{"decode", 2, 6, 2, 3, 2500, 16, 12, -1};
  return {{"prefill", [=] { return attend(prefill, false); }},
          {"prefill, mean", [=] { return attend(prefill, true); }},
          {"decode", [=] { return attend(decode, false); }},
          {"linear", [] { return multiply(false); }},
          {"linear, packed", [] { return multiply(true); }},
          {"rope", turn},
          {"norms", normalise},
          {"merge", join},
          {"append", store}};
}

bool same(const std::vector<Block>& a, const std::vector<Block>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].bytes() != b[i].bytes() || std::memcmp(a[i].data(), b[i].data(), a[i].bytes()) != 0) return false;
  }
  return a.size() == b.size();
}

}  // namespace

int main() {
  bool good = true;
  for (const Loop& loop : loops()) {
    attention::set_threads(1);
    const std::vector<Block> alone = loop.run();
    for (const int32_t threads : {2, 4, 3}) {
      attention::set_threads(threads);
      if (attention::threads() != threads)
        std::printf("%d threads are not %d\n", attention::threads(), threads), good = false;
      // Often in a row: threads that are late for one job meet the next.
      for (int round = 0; round < 5; ++round) {
        if (same(alone, loop.run())) continue;
        std::printf("%s: other bits with %d threads\n", loop.name, threads);
        good = false;
      }
    }
  }
  if (good) std::puts("the same bits with 1, 2, 3 and 4 threads");
  return good ? 0 : 1;
}
