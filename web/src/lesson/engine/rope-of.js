// How a model turns its queries and keys, as the options of the package's rope().

/** @typedef {{ style: 'half' | 'interleaved', base: number, rotaryDim?: number, scaling?: Record<string, any>, maxPositionEmbeddings?: number }} RopeSettings */

/** @param {Record<string, any>} config a config.json @param {number} D @returns {RopeSettings | null} null where it doesn't */
export function ropeOf(config, D) {
  if (config.model_type === 'gpt2') return null;
  const scaling = config.rope_parameters ?? config.rope_scaling ?? undefined;
  const share = scaling?.partial_rotary_factor ?? config.partial_rotary_factor ?? 1;
  const isWhole = scaling?.rope_type === 'proportional';
  return {
    style: 'half',
    base: scaling?.rope_theta ?? config.rope_theta ?? 10000,
    rotaryDim: isWhole ? D : Math.floor(D * share),
    ...(scaling && { scaling, maxPositionEmbeddings: config.max_position_embeddings }),
  };
}
