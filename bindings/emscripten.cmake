# The modules of dist/: attention.<build>.wasm and their glue. The JavaScript beside them picks one at load.

function(add_build name)
  cmake_parse_arguments(PARSE_ARGV 1 build "THREADS" "" "SOURCES;OPTIONS")
  add_executable(${name} bindings/bindings.cpp ${build_SOURCES})
  target_link_libraries(${name} PRIVATE attention_flags)
  target_compile_options(${name} PRIVATE ${build_OPTIONS}
    -fno-rtti -DEMSCRIPTEN_HAS_UNBOUND_TYPE_NAMES=0  # embind's names of types, which nothing asks for
    # Hot loops are written out in vectors; for the others smaller code is worth more than the compiler's own vectors.
    -fno-vectorize -fno-slp-vectorize "SHELL:-mllvm -unroll-runtime=false")
  set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS ${CMAKE_SOURCE_DIR}/bindings/embind.library.js)
  target_link_options(${name} PRIVATE
    # In place of -lembind, whose code for classes, strings and views is larger than what functions need.
    --js-library ${CMAKE_SOURCE_DIR}/bindings/embind.library.js
    -sMODULARIZE                      # a factory, so that one page can hold several instances
    -sEXPORT_ES6
    -sDYNAMIC_EXECUTION=0             # no eval: the package runs under script-src 'self' 'wasm-unsafe-eval'
    -sFILESYSTEM=0
    -sINITIAL_MEMORY=2MB              # phones refuse large initial memories
    -sSTACK_SIZE=256KB
    -sALLOW_MEMORY_GROWTH
    -sMEMORY_GROWTH_LINEAR_STEP=1MB   # what a call needs, not a fifth of the heap besides
    -sMAXIMUM_MEMORY=4GB
    -sABORTING_MALLOC=0               # a failed allocation is an AttentionError, not an abort
    -sMALLOC=dlmalloc                 # emmalloc adds address and size unchecked: near 4 GiB it gives out memory twice
    -sINCOMING_MODULE_JS_API=instantiateWasm
    -sTEXTDECODER=2                   # every engine with SIMD has it: no code in its place
    # Binaryen folds every function with one caller into it; the engines then lose the inner loops' registers.
    -sBINARYEN_EXTRA_PASSES=--one-caller-inline-max-function-size=1
    -sASSERTIONS=0)
  if(build_THREADS)
    target_sources(${name} PRIVATE src/parallel.cpp)
    target_compile_options(${name} PRIVATE -pthread)
    set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS ${CMAKE_SOURCE_DIR}/bindings/threads.post.js)
    target_link_options(${name} PRIVATE -pthread
      -sENVIRONMENT=web,worker,node     # workers are made in another way in each
      "-sPTHREAD_POOL_SIZE=Module.threads-1"  # so many workers are up when the factory resolves; load() says how many
      -sDEFAULT_PTHREAD_STACK_SIZE=256KB      # the kernels run on any thread
      -sEXPORTED_RUNTIME_METHODS=wasmMemory,PThread  # to end the workers in dispose()
      --post-js ${CMAKE_SOURCE_DIR}/bindings/threads.post.js
      -Wno-pthreads-mem-growth)       # its slow case is JavaScript that touches the heap, which ours does in bulk only
  else()
    target_sources(${name} PRIVATE src/serial.cpp)
    target_link_options(${name} PRIVATE
      -sENVIRONMENT=web               # runs everywhere, because wasm.js brings the bytes and the glue fetches nothing
      -sEXPORTED_RUNTIME_METHODS=wasmMemory)
  endif()
  # From where tools/glue.js brings them to dist/.
  set_target_properties(${name} PROPERTIES
    OUTPUT_NAME attention.${name} SUFFIX .js RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/made)
endfunction()

add_build(scalar SOURCES ${scalar_sources})
add_build(baseline SOURCES ${simd_sources} OPTIONS -msimd128)
add_build(relaxed SOURCES ${simd_sources} OPTIONS -msimd128 -mrelaxed-simd)
add_build(baseline-mt THREADS SOURCES ${simd_sources} OPTIONS -msimd128)
add_build(relaxed-mt THREADS SOURCES ${simd_sources} OPTIONS -msimd128 -mrelaxed-simd)

# Where no time is spent, or memory is what it waits for.
set_source_files_properties(src/attention.cpp src/cache.cpp src/quantize.cpp src/tokens.cpp src/norm.cpp src/merge.cpp
  src/embedding.cpp src/weights.cpp bindings/bindings.cpp PROPERTIES COMPILE_OPTIONS -Os)
