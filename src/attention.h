// The whole C++ interface of attention-wasm, and its manual.
//
// Letters, used in every file, shader and test:
//   B batch        H   query heads          Tq query length       D  query/key head size
//   G H / Hkv      Hkv key/value heads      Tk key/value length   Dv value head size
//
// What holds for every function here:
//   * Arrays are row-major and belong to the caller; nothing outside them is read or written, not even in a tail.
//   * Nothing is allocated: a function that needs working memory has a `..._scratch` beside it that tells the bytes.
//   * Arguments are taken as they are: the caller has checked shapes, ranges and pointers (bindings/check.js does).
//   * Sizes may be zero. Channels of a token are contiguous; every other distance is a stride, in elements.
//   * The result is the same, bit for bit, for any number of threads and whatever else is in the batch.
//   * Floating-point types other than float32 are read and written; every sum is in float32.
//
// The functions of namespace `plain` are the definition: plain loops without intrinsics, in the order of the formula.
// The functions outside it are what ships; the scalar build maps them to the plain ones.
#pragma once

#include <cstddef>
#include <cstdint>

namespace attention {

enum class Type : int32_t {
  kFloat32 = 0,
  kFloat16 = 1,
  kBfloat16 = 2,
  // Keys and values of a cache only. Their strides are in bytes.
  kInt8 = 3,  // bytes, those of even channels + 128; a token is padded to a multiple of 32 of them; its scale,
              // max |x| / 127, stands in an array of its own
  kQ8_0 = 4,  // blocks of 32 as in ggml: float16 scale, 32 signed bytes
  kQ4_0 = 5,  // blocks of 32 as in ggml: float16 scale, 16 bytes of two 4-bit numbers, 8 stands for 0
};

enum class MaskKind : int32_t {
  kNone = 0,
  kBoolean = 1,   // bytes; non-zero: the row may see the key
  kAdditive = 2,  // float32, added to the logit; -inf hides the key
};

/// What lands in `Attention::weights`. The first three are logits on their way through the formula.
enum class Stage : int32_t {
  kScores = 0,   // scale * <q, k>
  kCapped = 1,   // after the softcap
  kMasked = 2,   // after bias and masks, hidden keys -inf
  kWeights = 3,  // after the softmax
};

/// How the products of queries and keys are computed.
enum class Precision : int32_t {
  kFloat32 = 0,
  kInt8 = 1,  // queries of 8 bits, keys of 7, each token with its own scale; only where dot_of_bytes() says so
};

/// Whether this build multiplies bytes faster than floats.
bool dot_of_bytes();

/// Softmax attention with the options of PyTorch, ONNX and flash-attention:
///
///   x_ij   = softcap(scale * <q_i, k_j>) - slope_h * |p_i - j| + mask_ij     p_i = i + offset_b
///   P_ij   = e^(x_ij - L_i),  L_i = ln( sum over visible j of e^x_ij + e^sink_h )
///   out_i  = sum over visible j of P_ij v_j
///
/// Key j is visible to row i of item b and head h iff all of these hold:
///   i < q_length[b];  j < k_length[b];  p_i - left <= j (unless left < 0 or j < prefix);
///   j <= p_i + right (unless right < 0);
///   the boolean mask is non-zero there, or the additive mask is not -inf there.
/// Causal attention is right = 0. Hidden keys and values are skipped: NaN or infinity in them changes no bit.
/// A row that sees nothing: out 0, weights 0, L = -inf, or the sink where there is one.
struct Attention {
  int32_t B, H, Hkv, Tq, Tk, D, Dv;
  Type q_type, k_type, v_type, out_type;

  const void* q;  // [B, H, Tq, D]
  const void* k;  // [B, Hkv, Tk, D]
  const void* v;  // [B, Hkv, Tk, Dv]
  void* out;      // [B, H, Tq, Dv]; every row is written. Null: no output wanted
  int32_t q_batch, q_head, q_token;
  int32_t k_batch, k_head, k_token;
  int32_t v_batch, v_head, v_token;
  int32_t out_batch, out_head, out_token;

  // Packed sequences: the first token of item b, in place of b * *_batch. Null: not packed. With q_start, rows from
  // q_length[b] on do not exist: they are neither read nor written.
  const int32_t* q_start;   // (B); also of out and lse
  const int32_t* k_start;   // (B)
  const int32_t* q_length;  // (B) valid leading rows, or null: Tq
  const int32_t* k_length;  // (B) valid leading keys, or null: Tk
  const int32_t* offset;    // (B) position of row 0 among the keys, or null: 0
  int32_t left, right;      // window: keys visible before and after the row's own position; -1 = open
  int32_t prefix;           // so many first keys stay visible whatever `left` says
  const int32_t* gap;       // (B) tokens that are missing behind the prefix, counted in its distances, or null: 0

  // A cache whose tokens from ring_first on go round: key j >= ring_first stands in row
  // ring_first + (ring_start[b] + j - ring_first) mod ring_size. ring_size = 0: key j stands in row j.
  int32_t ring_first, ring_size;
  const int32_t* ring_start;  // (B)

  const float* k_scale;  // scales of kInt8 tokens, at b * scale_batch + h * scale_head + row
  const float* v_scale;
  int32_t scale_batch, scale_head;

  Precision precision;  // of calls with eight rows or more; weights are always computed in float32
  float scale;          // scale * q_i meets quantised keys as whole numbers of 16 bits, its largest being 32767
  float softcap;        // c > 0: x -> c tanh(x / c). 0 = off

  MaskKind mask_kind;
  const void* mask;
  int32_t mask_batch, mask_head, mask_row, mask_key;  // strides; 0 where the mask is broadcast

  const float* alibi;  // (H) slopes, or null
  const float* sinks;  // (H) logits that join the denominator only, or null

  float* lse;  // natural log-sum-exp, at b * lse_batch + h * lse_head + i, or null
  int32_t lse_batch, lse_head;

  // Attention weights of chosen heads and rows; null: not wanted, and not to be had with q_start.
  // `weights_mean` = 0: [B, num_heads, num_rows, Tk]; 1: [B, num_rows, Tk], the mean over the chosen heads.
  float* weights;
  int32_t weights_mean;
  Stage weights_stage;
  const int32_t* heads;  // (num_heads) or null: all H, num_heads = H
  const int32_t* rows;   // (num_rows) or null: all Tq, num_rows = Tq
  int32_t num_heads, num_rows;

  void* scratch;  // attention_scratch(call) bytes, 16-byte aligned
};

/// Bytes of working memory: O(Tk + D + Dv) for each thread, never O(Tq * Tk).
size_t attention_scratch(const Attention& call);
void attention(const Attention& call);

/// Stores tokens in a cache: to[b, h, row(first[b] + t)] = from[b, h, t], in the cache's type. `row` goes round as in
/// Attention: t -> t below ring_first, then ring_first + (t - ring_first) mod ring_size. A token with a value that is
/// not finite reads as NaN in the quantised types, or its block of 32 does; `from` is float32 there, and the width of
/// kQ8_0 and kQ4_0 a multiple of 32.
struct Append {
  int32_t B, H, T, width;
  Type from_type, to_type;
  const void* from;  // [B, H, T, width]
  void* to;          // [B, H, rows, width]
  int32_t from_batch, from_head, from_token;
  int32_t to_batch, to_head, to_token;  // in bytes for the quantised types
  float* scale;                         // of kInt8, or null
  int32_t scale_batch, scale_head;
  const int32_t* first;   // (B)
  const int32_t* length;  // (B) leading tokens to store, or null: T
  int32_t ring_first, ring_size;
};
void append(const Append& call);

/// Bytes of one token of so many channels.
size_t token_bytes(Type type, int32_t width);

/// Joins attention over disjoint sets of keys. With m = max_k L_k and w_k = e^(L_k - m):
///   out = sum_k w_k out_k / W,  L = m + ln W,  W = sum_k w_k (+ e^(sink_h - m), once)
/// A part (0, -inf) changes nothing; where all parts are -inf the result is (0, -inf).
struct Merge {
  int32_t parts, B, H, Tq, Dv;
  const float* outs;   // [parts, B, H, Tq, Dv]
  const float* lses;   // [parts, B, H, Tq]
  const float* sinks;  // (H) or null
  float* out;          // [B, H, Tq, Dv]
  float* lse;          // [B, H, Tq]
};
void merge(const Merge& call);

enum class RopeStyle : int32_t {
  kInterleaved = 0,  // pair i is (2i, 2i + 1)
  kHalf = 1,         // pair i is (i, i + rotary / 2)
};

/// Rotary position embedding: y1 = x1 cos - x2 sin, y2 = x2 cos + x1 sin for each pair, channels from `rotary` on pass.
/// The angles come as tables, because they are formed in float64 and kept between calls. `out` may be `x`.
struct Rope {
  int32_t B, H, T, D, rotary;  // rotary even, <= D
  RopeStyle style;
  Type type;      // of x and out
  const void* x;  // [B, H, T, D]
  void* out;      // [B, H, T, D]
  int32_t x_batch, x_head, x_token;
  int32_t out_batch, out_head, out_token;
  const float* cos;  // [B or 1, T, rotary / 2]
  const float* sin;
  int32_t table_batch;  // T * rotary / 2, or 0: all items share the table
};
void rope(const Rope& call);

/// out = x weight^T + bias + residual: x [M, K], weight [N, K] as PyTorch keeps it, out and residual [M, N].
struct Linear {
  int32_t M, N, K;
  int32_t x_row, out_row;  // distance between rows
  const float* x;
  const float* weight;    // [N, K], or null when `packed` is given
  const float* packed;    // from pack_linear, or null
  const float* bias;      // (N) or null
  const float* residual;  // rows out_row apart, or null; may be `out`
  float* out;
  void* scratch;  // linear_scratch(call) bytes
};
size_t linear_scratch(const Linear& call);
void linear(const Linear& call);

/// Weights laid out for `linear` once, to be used many times: `packed` holds packed_linear_size(N, K) floats.
size_t packed_linear_size(int32_t N, int32_t K);
void pack_linear(const float* weight, int32_t N, int32_t K, float* packed);
/// Row n of a packed weight, as it was.
void unpack_linear(const float* packed, int32_t N, int32_t K, int32_t n, float* row);

/// Rows of a table by number: out[t] = table[tokens[t]] + positions[t].
struct Embedding {
  int32_t T, width, vocabulary;
  Type type;
  const void* table;       // [vocabulary, width], or null when `packed` is given
  const float* packed;     // from pack_linear: that of a model which uses one table at both ends
  const int32_t* tokens;   // (T)
  const float* positions;  // [T, width] or null
  float* out;              // [T, width]
};
void embedding(const Embedding& call);

/// Normalisations of rows: x, out [rows, width], one after the other. `out` may be `x`.
///   kRms:     x / sqrt(mean x^2 + epsilon) * weight             (Zhang and Sennrich, 2019)
///   kLayer:   (x - mean) / sqrt(variance + epsilon) * weight + bias, the variance over width  (Ba et al., 2016)
///   kSoftmax: e^(x - max) / sum                                  weight, bias and epsilon are not looked at
enum class NormKind : int32_t { kRms = 0, kLayer = 1, kSoftmax = 2 };
struct Norm {
  int32_t rows, width;
  NormKind kind;
  float epsilon;
  const float* x;
  const float* weight;  // (width) or null: ones
  const float* bias;    // (width) or null: zeros
  float* out;
};
void norm(const Norm& call);

/// out[i] = f(x[i]), times gate[i] where there is one. `out` may be `x` or `gate`.
///   kSilu:     x / (1 + e^-x)
///   kGelu:     x / 2 (1 + erf(x / sqrt 2))
///   kGeluTanh: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))      (Hendrycks and Gimpel, 2016)
enum class ActivationKind : int32_t { kSilu = 0, kGelu = 1, kGeluTanh = 2 };
struct Activation {
  int32_t count;
  ActivationKind kind;
  const float* x;
  const float* gate;  // (count) or null
  float* out;
};
void activation(const Activation& call);

/// count values from one floating-point type to another; to a narrower one with rounding to nearest even.
void convert(const void* from, Type from_type, void* to, Type to_type, size_t count);

/// How many threads calls may use from now on, and how many there are: 1 in builds without threads.
void set_threads(int32_t count);
int32_t threads();

namespace plain {
size_t attention_scratch(const Attention& call);
void attention(const Attention& call);
void merge(const Merge& call);
void rope(const Rope& call);
size_t linear_scratch(const Linear& call);
void linear(const Linear& call);
size_t packed_linear_size(int32_t N, int32_t K);
void pack_linear(const float* weight, int32_t N, int32_t K, float* packed);
void unpack_linear(const float* packed, int32_t N, int32_t K, int32_t n, float* row);
void convert(const void* from, Type from_type, void* to, Type to_type, size_t count);
void norm(const Norm& call);
void activation(const Activation& call);
}  // namespace plain

}  // namespace attention
