// The JavaScript half of embind, for functions of numbers alone: a fiftieth of Emscripten's own, and a faster call
// (emcc --js-library). bindings.cpp registers functions as ever.
//
// Arguments need no conversion, because WebAssembly makes them 32-bit integers or floats itself. Of results, only
// addresses and sizes do (p at the head of the signature): they come back signed. Booleans are 0 and 1.
addToLibrary({
  $readText: (at) => {
    let text = '';
    for (; HEAPU8[at]; ++at) text += String.fromCharCode(HEAPU8[at]);
    return text;
  },

  _embind_register_function__deps: ['$readText', '$wasmTable'],
  _embind_register_function: (name, _count, _types, signature, invoker, target, _isAsync, _isNonnull) => {
    const call = wasmTable.get(invoker);
    const isUnsigned = readText(signature)[0] === 'p';
    Module[readText(name)] = (...args) => {
      const value = call(target, ...args);
      return isUnsigned ? value >>> 0 : value;
    };
  },
});
