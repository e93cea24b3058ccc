# Compiler flags of bide itself: warnings, hardening, sanitizers. None of them reaches programs that link bide.

# Warnings. They are errors in the presets (CMAKE_COMPILE_WARNING_AS_ERROR), never in a user's plain build.
set(warnings
    -Wall
    -Wextra
    -Wconversion
    -Wshadow
    -Wstrict-prototypes
    -Wmissing-prototypes
    -Wvla
    -Wundef
    -Wpointer-arith
    -Wcast-qual
    -Wwrite-strings
    -Wformat=2
    -Wimplicit-fallthrough
    -Wswitch-enum # also where a default stands beside the last case
)
if(CMAKE_C_COMPILER_ID STREQUAL GNU)
    list(APPEND warnings -Wlogical-op -Wduplicated-cond -Wduplicated-branches)
endif()

# Sanitizers and coverage apply to every object, those of the tests included.
if(BIDE_SANITIZE)
    add_compile_options(-fsanitize=${BIDE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${BIDE_SANITIZE})
endif()
if(BIDE_COVERAGE)
    add_compile_options(--coverage -fprofile-update=atomic)
    add_link_options(--coverage)
endif()

# Hardening of the installed objects. Sanitizers have their own checks and conflict with some of these flags. -fno-plt
# is not a matter of safety: the libraries bind at load time (-z now), so a stub per call would serve no purpose.
set(hardening)
set(hardening_link)
if(NOT BIDE_SANITIZE AND NOT BIDE_COVERAGE)
    include(CheckCCompilerFlag)
    foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection -fno-plt)
        string(MAKE_C_IDENTIFIER has${flag} has)
        check_c_compiler_flag(${flag} ${has})
        if(${has})
            list(APPEND hardening ${flag})
        endif()
    endforeach()
    list(APPEND hardening $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE$<SEMICOLON>-D_FORTIFY_SOURCE=2>)
    set(hardening_link LINKER:-z,relro LINKER:-z,now LINKER:-z,defs LINKER:--as-needed)
endif()
