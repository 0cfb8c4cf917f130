// The parameters of a multi-head layer by name: none missing, none too many, each of the right size.
import { isList, list, operand, product, sameShape } from './check.js';
import { refuse } from './errors.js';

/** @import { Context, Operand } from './check.js' */
/** @import { LayerConfig } from './check-multi-head.js' */

/** Whose parameter, by name. @typedef {'q' | 'k' | 'v' | 'out'} Projection */

/**
 * Parameters of a projection, in the order [weight, bias].
 * @typedef {{ weight: Operand, bias: Operand | null }} ProjectionParameters
 */

/** @param {LayerConfig} config @returns {Record<Projection, [number, number]>} shapes [out, in] */
export function projectionShapes({ dModel, numHeads, numKvHeads, headDim, kDim, vDim }) {
  return {
    q: [numHeads * headDim, dModel],
    k: [numKvHeads * headDim, kDim],
    v: [numKvHeads * headDim, vDim],
    out: [dModel, numHeads * headDim],
  };
}

/** @type {readonly Projection[]} */
export const kProjections = ['q', 'k', 'v', 'out'];

/**
 * The tensors of a state dict, each of the right size, none missing and none too many.
 * @param {Context} context @param {LayerConfig} config @param {unknown} dict
 * @returns {{ projections: Record<Projection, ProjectionParameters>, norms: { q: Operand, k: Operand } | null }}
 */
export function parametersOf(context, config, dict) {
  const { fn } = context;
  if (typeof dict !== 'object' || dict === null || isList(dict)) {
    refuse('INVALID_OPTION', fn, 'dict must be an object of tensors by name', dict);
  }
  const left = new Map(Object.entries(dict));
  const shapes = projectionShapes(config);
  const packed = takePacked(context, config, left, shapes);
  /** @param {string[]} names @param {number[]} shape */
  const take = (names, shape) => takeTensor(context, left, names, shape);
  const projections = /** @type {Record<Projection, ProjectionParameters>} */ ({});
  for (const name of kProjections) {
    const [N, K] = shapes[name];
    const fromPacked = name === 'out' ? {} : packed;
    projections[name] = {
      weight: fromPacked.weight?.[name] ?? take(weightNames(name), [N, K]),
      bias: config.bias ? (fromPacked.bias?.[name] ?? take(biasNames(name), [N])) : null,
    };
  }
  const norm = [config.headDim];
  const norms =
    config.normEpsilon === null ? null : { q: take(['q_norm.weight'], norm), k: take(['k_norm.weight'], norm) };
  for (const [name, surplus] of left) {
    const rule = `dict must hold the parameters of the layer alone (${config.bias ? 'with' : 'without'} bias)`;
    refuse('INVALID_OPTION', fn, rule, `${name} of shape ${describeShape(surplus)}`);
  }
  return { projections, norms };
}

/** @param {Projection} name @returns {string[]} */
const weightNames = (name) =>
  name === 'out' ? ['out_proj.weight', 'o_proj.weight'] : [`${name}_proj.weight`, `${name}_proj_weight`];

/** @param {Projection} name @returns {string[]} */
const biasNames = (name) => (name === 'out' ? ['out_proj.bias', 'o_proj.bias'] : [`${name}_proj.bias`]);

/** @param {unknown} value */
const describeShape = (value) => {
  const shape = /** @type {any} */ (value)?.shape;
  return Array.isArray(shape) ? list(shape) : 'unknown';
};

/** @param {Context} context @param {Map<string, unknown>} left @param {string[]} names @param {number[]} shape @returns {Operand} */
function takeTensor(context, left, names, shape) {
  const name = names.find((candidate) => left.has(candidate));
  if (name === undefined) {
    const have = [...left.keys()].join(', ') || 'no other tensor';
    refuse('INVALID_OPTION', context.fn, `dict must hold ${names[0]} of shape ${list(shape)}`, have);
  }
  const tensor = operand(context, name, left.get(name));
  if (!sameShape(tensor.shape, shape)) {
    refuse('INVALID_SHAPE', context.fn, `${name} must have shape ${list(shape)}`, tensor.shape);
  }
  left.delete(name);
  return tensor;
}

/**
 * PyTorch's packed projections: the rows of q, then k, then v.
 * @param {Context} context @param {LayerConfig} config @param {Map<string, unknown>} left
 * @param {Record<Projection, [number, number]>} shapes
 * @returns {{ weight?: Record<string, Operand>, bias?: Record<string, Operand> }}
 */
function takePacked(context, config, left, shapes) {
  const rows = /** @type {const} */ (['q', 'k', 'v']).map((name) => ({ name, count: shapes[name][0] }));
  const total = rows.reduce((sum, { count }) => sum + count, 0);
  /** @param {Operand} whole @param {number[]} inner */
  const split = (whole, inner) => {
    const width = product(inner);
    let start = 0;
    return Object.fromEntries(
      rows.map(({ name, count }) => {
        const part = { ...whole, shape: [count, ...inner], start, count: count * width };
        start += count * width;
        return [name, part];
      }),
    );
  };
  /** @type {{ weight?: Record<string, Operand>, bias?: Record<string, Operand> }} */
  const packed = {};
  if (left.has('in_proj_weight')) {
    if (config.kDim !== config.dModel || config.vDim !== config.dModel) {
      const rule = 'in_proj_weight must come with kDim and vDim equal to dModel';
      refuse('INVALID_SHAPE', context.fn, rule, [config.kDim, config.vDim, config.dModel]);
    }
    const whole = takeTensor(context, left, ['in_proj_weight'], [total, config.dModel]);
    packed.weight = split(whole, [config.dModel]);
  }
  if (config.bias && left.has('in_proj_bias')) {
    packed.bias = split(takeTensor(context, left, ['in_proj_bias'], [total]), []);
  }
  return packed;
}
