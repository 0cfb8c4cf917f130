// The limits of a GPU, in the same run as what is measured against them: multiply-adds in registers, and reading memory.

const kFactors = 8;
const kTerms = Array.from({ length: kFactors }, (_, n) => n);

/** Chains of fused multiply-adds, each waiting for itself alone; the factor keeps them finite. */
const arithmetic = /* wgsl */ `
override kRounds: u32;
@group(0) @binding(0) var<storage, read_write> out: array<vec4<f32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let factor = vec4(0.999 + 1e-9 * f32(id.x));
${kTerms.map((n) => `  var a${n} = vec4(f32(id.x) + ${n}.0);`).join('\n')}
  for (var n = 0u; n < kRounds; n++) {
${kTerms.map((n) => `    a${n} = fma(a${n}, factor, vec4(0.5));`).join('\n')}
  }
  out[id.x] = ${kTerms.map((n) => `a${n}`).join(' + ')};
}
`;

/** Every vector once, neighbours by neighbours. */
const reading = /* wgsl */ `
@group(0) @binding(0) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> source: array<vec4<f32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let step = 256u * groups.x;
  var sum = vec4<f32>();
  for (var n = id.x; n < arrayLength(&source); n += step) { sum += source[n]; }
  out[id.x] = sum;
}
`;

/**
 * @param {any} device @param {(run: () => void) => Promise<number>} timed least ms of a run that submits one pass
 * @param {boolean} isSmall for a GPU on the processor
 * @returns {Promise<{ gflops: number, gbytes: number }>}
 */
export async function measureLimits(device, timed, isSmall) {
  const { storage, copyDst } = { storage: 0x80, copyDst: 0x8 };
  const groups = isSmall ? 4 : 4096;
  const kRounds = isSmall ? 64 : 2048;
  const most = Math.min(device.limits.maxStorageBufferBindingSize, device.limits.maxBufferSize);
  const bytes = Math.min(most, isSmall ? 2 ** 22 : 2 ** 29) & ~15;
  const out = device.createBuffer({ size: 256 * groups * 16, usage: storage });
  const source = device.createBuffer({ size: bytes, usage: storage | copyDst });
  const made = (code, constants, buffers) => {
    const compute = { module: device.createShaderModule({ code }), entryPoint: 'main', constants };
    const pipeline = device.createComputePipeline({ layout: 'auto', compute });
    const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
    const group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
    return () => {
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(groups);
      pass.end();
      device.queue.submit([encoder.finish()]);
    };
  };
  const flops = 256 * groups * kRounds * kFactors * 4 * 2;
  const arithmeticMs = await timed(made(arithmetic, { kRounds }, [out]));
  const readingMs = await timed(made(reading, {}, [out, source]));
  out.destroy();
  source.destroy();
  return { gflops: flops / arithmeticMs / 1e6, gbytes: bytes / readingMs / 1e6 };
}
