// A tile of logits: TY·4 query rows against 32 keys, by 8 × TY threads of 4 rows × 4 keys each.
//
//   products[c] = (⟨q_r, k⟩ for the thread's rows r = 4·ty … 4·ty + 3), key number tx + 8·c of the tile
//
// A tile is in float16 where all tensors are and the device computes in it. Products of queries and keys are in float32
// all the same, because those of large values have no place in float16.
//
// Queries and keys pass through workgroup memory, 32 channels at a time; a row of vectors there has one more than it
// needs, so that threads side by side write to different banks.

/** Vectors of four that the stage must have room for. @param {number} ty */
export const stageVectors = (ty) => 8 * (4 * ty + 1) + 8 * 33;

/**
 * What stands before a shader with tiles in float16, and the types of a tile's vectors.
 * @param {boolean} f16
 */
export const tileTypes = (f16) =>
  f16
    ? 'enable f16;\nalias Tile = vec4<f16>;\nalias Factor = f16;\n'
    : 'alias Tile = vec4<f32>;\nalias Factor = f32;\n';

/**
 * `row_start(n)`, declared by the shader: where row n of the tile begins in `queries`, and whether it exists.
 * @param {number} ty @param {number} stage vectors of the stage
 */
export const tileProduct = (ty, stage) => /* wgsl */ `
const TX = 8u;
const TY = ${ty}u;
const THREADS = TX * TY;
const ROWS = 4u * TY;
const KEYS = 32u;
const QUERY_STEP = ROWS + 1u;
const KEY_STEP = KEYS + 1u;
const KEY_STAGE = 8u * QUERY_STEP;
var<workgroup> stage: array<Tile, ${stage}>;

fn load_tile(b: i32, kv: i32, key: i32, count: i32, c: i32, local: u32) {
  let depth = p.D - c;
  for (var n = local; n < 8u * ROWS; n += THREADS) {
    let row = row_start(i32(n >> 3u));
    let channel = i32(4u * (n & 7u));
    stage[(n & 7u) * QUERY_STEP + (n >> 3u)] =
      Tile(load4_queries(row.at + u32(c + channel), select(0, depth - channel, row.exists)));
  }
  for (var n = local; n < 8u * KEYS; n += THREADS) {
    let j = i32(n >> 3u);
    let channel = i32(4u * (n & 7u));
    let left = select(0, depth - channel, j < count);
    stage[KEY_STAGE + (n & 7u) * KEY_STEP + (n >> 3u)] =
      Tile(load4_keys(key_at(b, kv, key + j) + u32(c + channel), left));
  }
}

fn tile_products(b: i32, kv: i32, key: i32, count: i32, thread: vec2<u32>) -> array<vec4<f32>, 4> {
  var sums = array<vec4<f32>, 4>();
  for (var c = 0; c < p.D; c += 32) {
    workgroupBarrier();
    load_tile(b, kv, key, count, c, thread.x + TX * thread.y);
    workgroupBarrier();
    let steps = min(8u, u32(p.D - c + 3) >> 2u);
    for (var s = 0u; s < steps; s++) {
      let at = s * QUERY_STEP + 4u * thread.y;
      let q = array<vec4<f32>, 4>(
        vec4<f32>(stage[at]), vec4<f32>(stage[at + 1u]), vec4<f32>(stage[at + 2u]), vec4<f32>(stage[at + 3u]));
      for (var n = 0u; n < 4u; n++) {
        let k = vec4<f32>(stage[KEY_STAGE + s * KEY_STEP + thread.x + TX * n]);
        sums[n] += vec4(dot(q[0], k), dot(q[1], k), dot(q[2], k), dot(q[3], k));
      }
    }
  }
  return sums;
}
`;
