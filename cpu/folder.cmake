# The kernels are compiled once for each instruction set; kernels_choice.c chooses one at run time.
get_target_property(sources tdm_${name} SOURCES)
list(FILTER sources EXCLUDE REGEX "/kernels(_encoder|_sparse|_attention|_attention_softmax)?\\.c$")
set_property(TARGET tdm_${name} PROPERTY SOURCES ${sources})

set(sources_attention kernels_attention.c kernels_attention_softmax.c)
set(variants baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND variants avx2 avx512 avx512_bf16)
endif()
set(options_baseline)
set(options_avx2 -mavx2 -mfma)
set(options_avx512 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx2 -mfma)
set(options_avx512_bf16 ${options_avx512} -mavx512bf16)
foreach(variant ${variants})
    set(sources ${sources_attention})
    if(NOT variant STREQUAL avx512_bf16)
        list(APPEND sources kernels.c kernels_encoder.c kernels_sparse.c)
    endif()
    list(TRANSFORM sources PREPEND ${CMAKE_SOURCE_DIR}/${name}/)
    set(target tdm_${name}_${variant})
    add_library(${target} OBJECT ${sources})
    target_include_directories(${target} PRIVATE
                               $<TARGET_PROPERTY:tdm_${name},INCLUDE_DIRECTORIES>)
    target_compile_options(${target} PRIVATE -O3 -fno-math-errno -fno-trapping-math
                           ${options_${variant}})
    target_compile_definitions(${target} PRIVATE TDM_KERNELS=${variant})
    set_property(GLOBAL APPEND PROPERTY TDM_FOLDERS ${name}_${variant})
endforeach()

# The OpenMP runtime that oneDNN is built on: it is told to use one thread, ours.
set_property(GLOBAL APPEND PROPERTY TDM_LIBRARIES gomp)
