// What the dispatches of one attention call share: operands, lists, parameters, and the parts that a device can bind.
import { typeNumber } from '../memory.js';
import { placedPart } from './operands.js';

/** @import { AttentionCall, Strides } from '../check-attention.js' */
/** @import { Operand } from '../check.js' */
/** @import { WebgpuBackend } from './backend.js' */
/** @import { Part } from './operands.js' */

/** Lists of a call in one buffer. */
export class Lists {
  /** @type {number[]} */
  #words = [];
  /** @type {{ part: Part, at: number, count: number }[]} */
  #resident = [];
  #backend;

  /** @param {WebgpuBackend} backend */
  constructor(backend) {
    this.#backend = backend;
  }

  /** @param {Int32Array | null | undefined} list @returns {number} its place, −1 for none */
  add(list) {
    if (!list) return -1;
    const at = this.#words.length;
    for (const word of list) this.#words.push(word);
    return at;
  }

  /** Float32 values by their bits. @param {Operand | null} operand */
  addFloats(operand) {
    if (!operand) return -1;
    const { operands } = this.#backend;
    const values = operands.values(operand);
    if (values) return this.add(new Int32Array(Float32Array.from(values).buffer));
    const at = this.#words.length;
    this.#resident.push({ part: operands.float32(operand), at, count: operand.count });
    for (let n = 0; n < operand.count; ++n) this.#words.push(0);
    return at;
  }

  upload() {
    const { recording } = this.#backend;
    const placed = recording.upload(Int32Array.from(this.#words));
    for (const { part, at, count } of this.#resident) {
      recording.copy(part.buffer, part.first * 4, placed.buffer, placed.offset + at * 4, count * 4);
    }
    return placed;
  }
}

/** Batch items, key/value heads and query rows that one dispatch does. @typedef {{ b0: number, b1: number, h0: number, h1: number, i0: number, i1: number }} Range */

/** What all dispatches of a call share. */
export class AttentionPlan {
  /** @param {WebgpuBackend} backend @param {AttentionCall} call */
  constructor(backend, call) {
    const { operands } = backend;
    this.backend = backend;
    this.call = call;
    this.q = operands.float32(call.q);
    const isUniform = call.k.dtype === call.v.dtype;
    this.k = isUniform ? operands.part(call.k) : operands.float32(call.k);
    this.v = isUniform ? operands.part(call.v) : operands.float32(call.v);
    this.isPacked = call.qStart !== null;
    const { mask, alibi, sinks, offset } = call.shared;
    this.maskKind = mask ? (mask.allowed ? 1 : 2) : 0;
    /** @type {Part | null} */
    this.mask = null;
    if (mask?.allowed) {
      this.mask = placedPart(backend.recording.upload(mask.allowed));
    } else if (mask?.added) {
      this.mask = operands.float32(mask.added);
    }
    const lists = new Lists(backend);
    const { cache, weights } = call;
    this.listed = {
      q_start: lists.add(call.qStart),
      k_start: lists.add(call.kStart),
      q_length: lists.add(call.qLength),
      k_length: lists.add(call.kLength),
      offset: lists.add(offset),
      gap: lists.add(cache?.gap),
      ring_start: lists.add(cache?.ringStart),
      alibi: lists.addFloats(alibi),
      sinks: lists.addFloats(sinks),
      heads: lists.add(weights?.heads),
      rows: lists.add(weights?.rows),
    };
    this.lists = lists.upload();
    const lseCount = call.lse ? call.lse.count : 0;
    this.lse = { buffer: backend.recording.temporary(lseCount * 4), first: 0, dtype: /** @type {const} */ ('float32') };
  }

  /** What shaders are made for. */
  get constants() {
    return { kKeyType: typeNumber(this.k.dtype), kMaskKind: this.maskKind };
  }

  /** Elements of a tensor that a range touches, from a strided one. @param {Strides} strides @param {number} width @param {number[]} from @param {number[]} to */
  static extent({ batch, head, token }, width, [b0, h0, t0], [b1, h1, t1]) {
    const low = b0 * batch + h0 * head + t0 * token;
    return [low, Math.max(low, (b1 - 1) * batch + (h1 - 1) * head + (t1 - 1) * token + width)];
  }

  /** Elements of q, k, v and out in a range; the keys of a cache reach as far as its rows do. @param {Range} range */
  extents({ b0, b1, h0, h1, i0, i1 }) {
    const { call, isPacked } = this;
    const { G, D, Dv } = { G: groupOf(call), D: call.D, Dv: call.Dv };
    const { extent } = AttentionPlan;
    const T = Math.max(call.Tk, call.cache?.ringSize ? call.cache.ringSize + call.cache.prefix : 0);
    if (isPacked) {
      const all = { q: [0, call.q.count], k: [0, call.k.count], v: [0, call.v.count], out: [0, call.out?.count ?? 0] };
      return /** @type {Record<'q' | 'k' | 'v' | 'out', number[]>} */ (all);
    }
    return {
      q: extent(call.qStrides, D, [b0, h0 * G, i0], [b1, h1 * G, i1]),
      k: extent(call.kStrides, D, [b0, h0, 0], [b1, h1, T]),
      v: extent(call.vStrides, Dv, [b0, h0, 0], [b1, h1, T]),
      out: extent(call.outStrides, Dv, [b0, h0 * G, i0], [b1, h1 * G, i1]),
    };
  }

  /** Elements of the mask in a range. @param {Range} range */
  maskExtent({ b0, b1, h0, h1, i0, i1 }) {
    const { call } = this;
    const [batch, head, row, key] = call.shared.mask?.strides ?? [0, 0, 0, 0];
    const G = groupOf(call);
    const low = b0 * batch + h0 * G * head + i0 * row;
    const high = (b1 - 1) * batch + (h1 * G - 1) * head + (i1 - 1) * row + (call.Tk - 1) * key + 1;
    // Booleans stand four to a word.
    return this.maskKind === 1 ? [Math.floor(low / 4), Math.ceil(high / 4)] : [low, high];
  }

  /**
   * The call cut into ranges whose parts a device can bind: over items, then heads, then rows.
   * @param {Part} out @param {Range} range @returns {Range[]}
   */
  ranges(out, range) {
    const { operands } = this.backend;
    const extents = this.extents(range);
    const parts = { q: this.q, k: this.k, v: this.v, out };
    let fits = true;
    for (const name of /** @type {const} */ (['q', 'k', 'v', 'out'])) {
      fits &&= operands.fits(parts[name], extents[name][0], extents[name][1]);
    }
    const [low, high] = this.maskExtent(range);
    if (this.mask) fits &&= operands.fits(this.mask, low, high);
    if (fits) return [range];
    for (const [from, to] of /** @type {const} */ ([
      ['b0', 'b1'],
      ['h0', 'h1'],
      ['i0', 'i1'],
    ])) {
      const middle = (range[from] + range[to]) >> 1;
      if (middle === range[from] || this.isPacked) continue;
      return [...this.ranges(out, { ...range, [to]: middle }), ...this.ranges(out, { ...range, [from]: middle })];
    }
    throw operands.tooLarge(Math.max(...Object.values(extents).map(([a, b]) => (b - a) * 4)));
  }

  /** Bindings and parameters that every attention shader has. @param {Range} range @param {Part} out */
  common(range, out) {
    const { call, listed, backend } = this;
    const { operands } = backend;
    const extents = this.extents(range);
    /** @param {Part} part @param {number[]} extent */
    const window = (part, [low, high]) => operands.window(part, low, high);
    const q = window(this.q, extents.q);
    const k = window(this.k, extents.k);
    const v = window(this.v, extents.v);
    const to = window(out, extents.out);
    const mask = this.mask ? window(this.mask, this.maskExtent(range)) : { binding: this.lists, first: 0 };
    const { left, right, scale, softcap } = call.shared;
    const [mask_batch, mask_head, mask_row, mask_key] = call.shared.mask?.strides ?? [0, 0, 0, 0];
    const { cache } = call;
    const { b0, b1, h0, h1, i0, i1 } = range;
    const G = groupOf(call);
    const values = {
      ...{ G, Tq: call.Tq, Tk: call.Tk, D: call.D, Dv: call.Dv },
      ...{ left, right, scale, softcap, stage: 3, ...listed },
      ...{ prefix: cache?.prefix ?? 0, ring_first: cache?.prefix ?? 0, ring_size: cache?.ringSize ?? 0 },
      ...{ q_first: q.first, ...strideFields('q', call.qStrides) },
      ...{ k_first: k.first, ...strideFields('k', call.kStrides) },
      ...{ v_first: v.first, ...strideFields('v', call.vStrides) },
      ...{ out_first: to.first, ...strideFields('out', call.outStrides) },
      ...{ mask_first: mask.first * (this.maskKind === 1 ? 4 : 1), mask_batch, mask_head, mask_row, mask_key },
      ...{ lse_first: 0, lse_batch: call.lse?.batch ?? 0, lse_head: call.lse?.head ?? 0, has_lse: call.lse ? 1 : 0 },
      ...{ item0: b0, head0: h0, row0: i0, row_end: i1, num_rows: 0, span: 0 },
      ...{ groups: 0, blocks: 0, part_heads: h1 - h0, value_blocks: 1, value_vectors: 0, parts: 0 },
    };
    const bindings = [q.binding, k.binding, this.lists, mask.binding];
    return { values, bindings, value: v.binding, out: to.binding, items: b1 - b0, heads: h1 - h0, rows: i1 - i0 };
  }
}

/** @param {AttentionCall} call query heads to a key/value head */
const groupOf = ({ H, Hkv }) => (Hkv === 0 ? 1 : H / Hkv);

/** @param {string} name @param {Strides} strides */
export const strideFields = (name, { batch, head, token }) => ({
  [`${name}_batch`]: batch,
  [`${name}_head`]: head,
  [`${name}_token`]: token,
});
