// Relaxed SIMD is behind a flag in engines before V8 11.4 or so; later ones no longer know the flag.
export const kRelaxedFlags =
  Number(process.versions.node.split('.')[0]) < 22 ? ['--experimental-wasm-relaxed-simd'] : [];
