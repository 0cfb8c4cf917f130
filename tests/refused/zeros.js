// Tensors for calls that never come to compute.

/** Zeros of a shape. */
export const f32 = (...shape) => ({ data: new Float32Array(shape.reduce((a, b) => a * b, 1)), shape });

// B=2 H=4 Hkv=2 Tq=3 Tk=5 D=6 Dv=7: all different, so that a rule about one doesn't hold by another.
export const q = f32(2, 4, 3, 6);
export const k = f32(2, 2, 5, 6);
export const v = f32(2, 2, 5, 7);
