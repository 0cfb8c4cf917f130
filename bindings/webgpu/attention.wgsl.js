// What the attention shaders share: the parameters of a call, what a query row may see (as src/visibility.h), and the
// passes that a logit goes through, in the order of src/attention.h.
import { Layout } from './layout.js';
import { constants, floatLoader, groupNumber, loader, tanhExact } from './shared.wgsl.js';

/**
 * Letters as in src/attention.h. `*_first`: element of the bound part where item 0, head 0, token 0 stands.
 * Names of lists hold their place in `lists`, −1 for none. A dispatch does `items` batch items from `item0`, key/value
 * heads from `head0` on, and query rows row0 … row_end − 1.
 */
export const attentionLayout = new Layout({
  i32: `G Tq Tk D Dv left right prefix ring_first ring_size
    q_start k_start q_length k_length offset gap ring_start alibi sinks heads rows
    item0 head0 row0 row_end num_rows stage has_lse span`,
  u32: `q_first q_batch q_head q_token k_first k_batch k_head k_token v_first v_batch v_head v_token
    out_first out_batch out_head out_token mask_first mask_batch mask_head mask_row mask_key
    lse_first lse_batch lse_head groups blocks part_heads value_blocks value_vectors parts`,
  f32: 'scale softcap',
});

export const attentionHeader = /* wgsl */ `
override kKeyType: u32;  // of keys and values; queries are float32
override kMaskKind: u32;
${attentionLayout.wgsl}
@group(0) @binding(1) var<storage, read> queries: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> keys: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> lists: array<i32>;
@group(0) @binding(4) var<storage, read> mask: array<u32>;
${constants}${groupNumber}${tanhExact}
${floatLoader('queries')}
${loader('keys', 'kKeyType')}

fn listed(list: i32, n: i32, otherwise: i32) -> i32 {
  if (list < 0) { return otherwise; }
  return lists[list + n];
}
fn query_length(b: i32) -> i32 { return listed(p.q_length, b, p.Tq); }
fn key_length(b: i32) -> i32 { return listed(p.k_length, b, p.Tk); }
fn row_position(b: i32, i: i32) -> i32 { return i + listed(p.offset, b, 0); }

fn place(first: u32, start: i32, b: i32, batch: u32, h: i32, head: u32, t: i32, token: u32) -> u32 {
  if (start >= 0) { return first + u32(lists[start + b] + t) * token + u32(h) * head; }
  return first + u32(b) * batch + u32(h) * head + u32(t) * token;
}
fn query_at(b: i32, h: i32, i: i32) -> u32 {
  return place(p.q_first, p.q_start, b, p.q_batch, h, p.q_head, i, p.q_token);
}
fn key_row(b: i32, j: i32) -> i32 {
  if (p.ring_size == 0 || j < p.ring_first) { return j; }
  return p.ring_first + (lists[p.ring_start + b] + j - p.ring_first) % p.ring_size;
}
fn key_at(b: i32, h: i32, j: i32) -> u32 {
  return place(p.k_first, p.k_start, b, p.k_batch, h, p.k_head, key_row(b, j), p.k_token);
}

// Keys first … end - 1, and those below the prefix. Both ends grow with i.
fn first_visible(b: i32, i: i32) -> i32 {
  if (p.left < 0) { return 0; }
  return clamp(row_position(b, i) - p.left, 0, key_length(b));
}
fn end_visible(b: i32, i: i32) -> i32 {
  let length = key_length(b);
  if (p.right < 0) { return length; }
  return clamp(row_position(b, i) + p.right + 1, 0, length);
}
fn prefix_visible(b: i32, i: i32) -> i32 {
  if (p.prefix == 0) { return 0; }
  let most = min(p.prefix, key_length(b));
  if (p.right < 0) { return most; }
  return clamp(row_position(b, i) + p.right + 1, 0, most);
}

// What one query row needs to know of itself.
struct Row { first: i32, end: i32, prefix: i32, position: i32, mask: u32, slope: f32 }

fn row_of(b: i32, h: i32, i: i32) -> Row {
  var row = Row(0, 0, 0, 0, 0u, 0.0);
  if (i >= query_length(b)) { return row; }
  row.first = first_visible(b, i);
  row.end = end_visible(b, i);
  row.prefix = prefix_visible(b, i);
  row.position = row_position(b, i);
  row.mask = p.mask_first + u32(b) * p.mask_batch + u32(h) * p.mask_head + u32(i) * p.mask_row;
  if (p.alibi >= 0) { row.slope = bitcast<f32>(lists[p.alibi + h]); }
  return row;
}

fn mask_value(row: Row, j: i32) -> f32 { return bitcast<f32>(mask[row.mask + u32(j) * p.mask_key]); }

// Whether the row sees key j: a flag, because neither -inf nor NaN can be told in WGSL arithmetic.
fn sees(row: Row, j: i32) -> bool {
  if ((j < row.first || j >= row.end) && j >= row.prefix) { return false; }
  if (kMaskKind == 1u) {
    let cell = row.mask + u32(j) * p.mask_key;
    return ((mask[cell >> 2u] >> ((cell & 3u) * 8u)) & 0xffu) != 0u;
  }
  if (kMaskKind == 2u) { return !is_minus_infinity(mask_value(row, j)); }
  return true;
}

// scale -> softcap -> + ALiBi + additive mask, of a key that the row sees. Logits up to \`stage\`: 0 scores, 1 capped.
fn logit(product: f32, row: Row, b: i32, j: i32, stage: i32) -> f32 {
  var x = p.scale * product;
  if (stage > 0 && p.softcap > 0.0) { x = p.softcap * tanh_exact(x / p.softcap); }
  if (stage < 2) { return x; }
  if (p.alibi >= 0) {
    let missing = select(0, listed(p.gap, b, 0), j < p.prefix);
    x -= row.slope * f32(abs(row.position - (j - missing)));
  }
  if (kMaskKind == 2u) { x += mask_value(row, j); }
  return x;
}
`;

/** For shaders that multiply weights and values, and have a running softmax. */
export const valuesHeader = /* wgsl */ `
@group(0) @binding(5) var<storage, read> values: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read_write> out: array<f32>;
@group(0) @binding(7) var<storage, read_write> lse: array<u32>;
${loader('values', 'kKeyType')}

fn value_at(b: i32, h: i32, j: i32) -> u32 {
  return place(p.v_first, p.k_start, b, p.v_batch, h, p.v_head, key_row(b, j), p.v_token);
}
fn out_at(b: i32, h: i32, i: i32) -> u32 {
  return place(p.out_first, p.q_start, b, p.out_batch, h, p.out_head, i, p.out_token);
}
fn store4(at: u32, count: i32, x: vec4<f32>) {
  if (count > 0) { out[at] = x.x; }
  if (count > 1) { out[at + 1u] = x.y; }
  if (count > 2) { out[at + 2u] = x.z; }
  if (count > 3) { out[at + 3u] = x.w; }
}
// max is the lowest finite number and sum 0 in a row that sees nothing.
fn store_lse(b: i32, h: i32, i: i32, top: f32, sum: f32) {
  if (p.has_lse == 0) { return; }
  let at = place(p.lse_first, p.q_start, b, p.lse_batch, h, p.lse_head, i, 1u);
  lse[at] = select(bitcast<u32>(top + log(sum)), kMinusInfinityBits, sum == 0.0);
}
// A sink is there before any key: the first maximum, with a weight of 1.
fn sink_of(h: i32) -> f32 {
  if (p.sinks < 0) { return kLowest; }
  let sink = bitcast<f32>(lists[p.sinks + h]);
  return select(sink, kLowest, is_minus_infinity(sink));
}
fn has_sink(h: i32) -> bool { return p.sinks >= 0 && !is_minus_infinity(bitcast<f32>(lists[p.sinks + h])); }
`;
