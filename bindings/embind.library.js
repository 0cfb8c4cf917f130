// The JavaScript half of embind, for functions of numbers alone: a twentieth of Emscripten's own, and a faster call
// (emcc --js-library). bindings.cpp registers functions as ever; what it says of other types is not listened to.
//
// Arguments need no conversion, because WebAssembly makes them 32-bit integers or floats itself. A result may: 32-bit
// integers come back signed, and booleans as numbers. Parameters are all named, since emcc counts them.
addToLibrary({
  $embindResults: {},
  $readName: (at) => {
    let name = '';
    for (; HEAPU8[at]; ++at) name += String.fromCharCode(HEAPU8[at]);
    return name;
  },

  _embind_register_function__deps: ['$embindResults', '$readName', '$wasmTable'],
  _embind_register_function: (name, _count, types, _signature, invoker, target, _isAsync, _isNonnull) => {
    const result = HEAPU32[types >>> 2];
    const call = wasmTable.get(invoker);
    const [plainName] = readName(name).split('('); // some versions have the types behind it
    Module[plainName] = (...args) => {
      const value = call(target, ...args);
      const convert = embindResults[result];
      return convert ? convert(value) : value;
    };
  },

  _embind_register_integer__deps: ['$embindResults'],
  _embind_register_integer: (type, _name, size, least, _most) => {
    if (least === 0 && size === 4) embindResults[type] = (value) => value >>> 0;
  },

  _embind_register_bool__deps: ['$embindResults'],
  _embind_register_bool: (type, _name, _true, _false) => {
    embindResults[type] = (value) => value !== 0;
  },

  _embind_register_void__deps: [],
  _embind_register_void: (_type, _name) => {},
  _embind_register_float__deps: [],
  _embind_register_float: (_type, _name, _size) => {},
  _embind_register_bigint__deps: [],
  _embind_register_bigint: (_type, _name, _size, _least, _most) => {},
  _embind_register_emval__deps: [],
  _embind_register_emval: (_type) => {},
  _embind_register_memory_view__deps: [],
  _embind_register_memory_view: (_type, _index, _name) => {},
  _embind_register_std_string__deps: [],
  _embind_register_std_string: (_type, _name) => {},
  _embind_register_std_wstring__deps: [],
  _embind_register_std_wstring: (_type, _size, _name) => {},
});
