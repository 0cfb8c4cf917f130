// The files of a model: those beside the page, or the reader's own, which never leave this device.

/** @import { Progress } from '../types.js' */

/**
 * @typedef {object} ModelFiles
 * @property {string} name
 * @property {Record<string, any>} config
 * @property {any} tokenizer
 * @property {any} tokenizerConfig
 * @property {Uint8Array[]} weights bytes of the safetensors files
 */

const kUrls = {
  config: new URL('../../model/config.json', import.meta.url),
  tokenizer: new URL('../../model/tokenizer.json', import.meta.url),
  tokenizerConfig: new URL('../../model/tokenizer_config.json', import.meta.url),
  weights: new URL('../../model/model.safetensors', import.meta.url),
};

/** @param {URL} url */
async function fetched(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`HTTP status ${response.status} for ${url.pathname}`);
  return response;
}

/** @param {(progress: Progress) => void} onProgress @returns {Promise<ModelFiles>} */
export async function shippedFiles(onProgress) {
  const json = async (/** @type {URL} */ url) => (await fetched(url)).json();
  const [config, tokenizer, tokenizerConfig, weights] = await Promise.all([
    ...[json(kUrls.config), json(kUrls.tokenizer), json(kUrls.tokenizerConfig)],
    fetched(kUrls.weights).then((response) => {
      // Of a compressed answer the length says nothing about the bytes that come out.
      const total = response.headers.has('content-encoding') ? 0 : Number(response.headers.get('content-length'));
      return bytesOf(response.body, total, (loaded) => onProgress({ stage: 'Loading the model', loaded, total }));
    }),
  ]);
  return { name: 'tiny-austen', config, tokenizer, tokenizerConfig, weights: [weights] };
}

/**
 * @param {readonly File[]} files @param {(progress: Progress) => void} onProgress
 * @returns {Promise<ModelFiles>}
 */
export async function ownFiles(files, onProgress) {
  const byName = new Map(files.map((file) => [file.name, file]));
  const shards = files.filter(({ name }) => name.endsWith('.safetensors')).sort((a, b) => (a.name < b.name ? -1 : 1));
  const missing = ['config.json', 'tokenizer.json'].filter((name) => !byName.has(name));
  if (shards.length === 0) missing.push('*.safetensors');
  if (missing.length > 0) throw new Error(`${missing.join(' and ')} not among the ${files.length} files chosen`);
  const json = async (/** @type {string} */ name) => {
    const file = byName.get(name);
    try {
      return file ? JSON.parse(await file.text()) : {};
    } catch (error) {
      throw new Error(`${name} is not JSON: ${/** @type {Error} */ (error).message}`);
    }
  };
  const config = await json('config.json');
  const tokenizer = await json('tokenizer.json');
  const tokenizerConfig = await json('tokenizer_config.json');
  const total = shards.reduce((sum, { size }) => sum + size, 0);
  const weights = [];
  let done = 0;
  for (const file of shards) {
    const report = (/** @type {number} */ loaded) =>
      onProgress({ stage: `Reading ${file.name}`, loaded: done + loaded, total });
    weights.push(await bytesOf(file.stream(), file.size, report));
    done += file.size;
  }
  const name = config._name_or_path || config.model_type || 'own model';
  return { name, config, tokenizer, tokenizerConfig, weights };
}

/**
 * @param {ReadableStream<Uint8Array> | null} stream @param {number} size what is to be expected, 0 where nobody knows
 * @param {(loaded: number) => void} onProgress
 */
async function bytesOf(stream, size, onProgress) {
  let bytes = new Uint8Array(size || 2 ** 20);
  let loaded = 0;
  const reader = stream?.getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    if (loaded + part.value.length > bytes.length) {
      const larger = new Uint8Array(Math.max(2 * bytes.length, loaded + part.value.length));
      larger.set(bytes);
      bytes = larger;
    }
    bytes.set(part.value, loaded);
    loaded += part.value.length;
    onProgress(loaded);
  }
  return bytes.subarray(0, loaded);
}
