// Every browser flag of the tests, in one place.

export const kBrowserFlags = [
  '--no-sandbox', // the tests may run as root, where Chromium has no sandbox
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-quic',
];

/** WebGPU on the processor, by the SwiftShader that Chromium brings. */
export const kWebgpuFlags = ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'];
