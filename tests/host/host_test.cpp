// The kernels that ship against the plain ones, on random shapes and options. Every array is a heap block of exactly
// its size, so that the address sanitizer sees a read or write one element too far.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "attention.h"

namespace {

using attention::Attention;

std::mt19937 generator(20240229);

int32_t pick(int32_t lowest, int32_t highest) {
  return std::uniform_int_distribution<int32_t>(lowest, highest)(generator);
}

bool coin() { return pick(0, 1) == 1; }

/// Floats that end where their heap block ends; half of them start off the 16-byte grid.
class Floats {
 public:
  explicit Floats(size_t size) : shift_(coin() ? 1 : 0), block_(size + shift_) {}
  static Floats random(size_t size) {
    Floats result(size);
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < size; ++i) result.data()[i] = normal(generator);
    return result;
  }
  float* data() { return block_.data() + shift_; }
  size_t size() const { return block_.size() - shift_; }

 private:
  size_t shift_;
  std::vector<float> block_;
};

struct Result {
  Floats out, lse, weights;
};

/// One random call with everything it points to.
class Case {
 public:
  Case()
      : B(pick(1, 2)),
        Hkv(pick(1, 2)),
        H(Hkv * pick(1, 3)),
        Tq(pick(1, 40)),
        Tk(pick(1, 80)),
        D(coin() ? pick(1, 20) : pick(60, 68)),
        Dv(coin() ? D : pick(1, 36)),
        q_(Floats::random(size_t(B) * H * Tq * D)),
        k_(Floats::random(size_t(B) * Hkv * Tk * D)),
        v_(Floats::random(size_t(B) * Hkv * Tk * Dv)),
        alibi_(Floats::random(H)),
        sinks_(Floats::random(H)),
        additive_(Floats::random(size_t(Tq) * Tk)),
        boolean_(size_t(Tq) * Tk) {
    for (uint8_t& byte : boolean_) byte = coin() ? 1 : 0;
    for (size_t i = 0; i < additive_.size(); ++i)
      if (pick(0, 4) == 0) additive_.data()[i] = -std::numeric_limits<float>::infinity();
    for (int32_t b = 0; b < B; ++b) {
      offset_.push_back(pick(-3, Tk));
      q_length_.push_back(pick(0, Tq));
      k_length_.push_back(pick(0, Tk));
    }
    fill_call();
  }

  void print() const {
    std::printf(
        "B %d H %d Hkv %d Tq %d Tk %d D %d Dv %d window [%d, %d] softcap %g mask %d alibi %d sinks %d lengths %d\n", B,
        H, Hkv, Tq, Tk, D, Dv, call_.left, call_.right, double(call_.softcap), int(call_.mask_kind),
        call_.alibi != nullptr, call_.sinks != nullptr, call_.k_length != nullptr);
  }

  template <typename Function, typename Scratch>
  Result run(Function function, Scratch scratch_size) {
    Result result{Floats(size_t(B) * H * Tq * Dv), Floats(size_t(B) * H * Tq), Floats(size_t(B) * H * Tq * Tk)};
    call_.out = result.out.data();
    call_.lse = result.lse.data();
    call_.weights = result.weights.data();
    const size_t bytes = scratch_size(call_);
    std::vector<std::byte> scratch(bytes);
    call_.scratch = scratch.data();
    function(call_);
    return result;
  }

  const int32_t B, Hkv, H, Tq, Tk, D, Dv;

 private:
  void fill_call() {
    call_ = Attention{};
    call_.B = B, call_.H = H, call_.Hkv = Hkv, call_.Tq = Tq, call_.Tk = Tk, call_.D = D, call_.Dv = Dv;
    call_.q = q_.data(), call_.k = k_.data(), call_.v = v_.data();
    call_.q_token = D, call_.q_head = Tq * D, call_.q_batch = H * Tq * D;
    call_.k_token = D, call_.k_head = Tk * D, call_.k_batch = Hkv * Tk * D;
    call_.v_token = Dv, call_.v_head = Tk * Dv, call_.v_batch = Hkv * Tk * Dv;
    call_.out_token = Dv, call_.out_head = Tq * Dv, call_.out_batch = H * Tq * Dv;
    call_.lse_head = Tq, call_.lse_batch = H * Tq;
    call_.weights_stage = attention::Stage::kWeights;
    call_.num_heads = H, call_.num_rows = Tq;
    call_.scale = 1 / std::sqrt(float(D));
    call_.softcap = pick(0, 2) == 0 ? 2.5f : 0;
    call_.left = coin() ? -1 : pick(0, 20);
    call_.right = coin() ? -1 : pick(0, 3);
    if (coin()) call_.offset = offset_.data();
    if (coin()) call_.q_length = q_length_.data(), call_.k_length = k_length_.data();
    if (coin()) call_.alibi = alibi_.data();
    if (coin()) call_.sinks = sinks_.data();
    call_.mask_kind = attention::MaskKind(pick(0, 2));
    if (call_.mask_kind == attention::MaskKind::kBoolean) call_.mask = boolean_.data();
    if (call_.mask_kind == attention::MaskKind::kAdditive) call_.mask = additive_.data();
    call_.mask_row = Tk, call_.mask_key = 1;
  }

  Floats q_, k_, v_, alibi_, sinks_, additive_;
  std::vector<uint8_t> boolean_;
  std::vector<int32_t> offset_, q_length_, k_length_;
  Attention call_;
};

/// Equal where infinite, within `tolerance` (relative above 1) elsewhere.
bool agree(const char* what, Floats& actual, Floats& expected, float tolerance) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const float a = actual.data()[i];
    const float e = expected.data()[i];
    if (a == e) continue;
    if (!(std::fabs(a - e) <= tolerance * std::fmax(1.0f, std::fabs(e)))) {
      std::printf("%s[%zu]: %.9g, expected %.9g in\n  ", what, i, double(a), double(e));
      return false;
    }
  }
  return true;
}

}  // namespace

int main() {
  const int cases = 400;
  int failed = 0;
  for (int i = 0; i < cases; ++i) {
    Case random_case;
    Result plain = random_case.run(attention::plain::attention, attention::plain::attention_scratch);
    Result fast = random_case.run(attention::attention, attention::attention_scratch);
    const bool good = agree("out", fast.out, plain.out, 1e-5f) && agree("lse", fast.lse, plain.lse, 1e-5f) &&
                      agree("weights", fast.weights, plain.weights, 1e-5f);
    if (!good) {
      random_case.print();
      ++failed;
    }
  }
  std::printf("%d of %d cases agree\n", cases - failed, cases);
  return failed == 0 ? 0 : 1;
}
