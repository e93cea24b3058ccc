# Finds the dependencies of libbide-fleet: sets fleet_needs, or leaves the library out by emptying fleet_sources. The
# script that runs inside Redis is embedded as an array of bytes, with its SHA-1 for EVALSHA.
set(fleet_needs)
if(BIDE_TESTS AND NOT BIDE_FLEET)
    message(FATAL_ERROR "BIDE_TESTS tests everything: it needs BIDE_FLEET")
endif()
if(BIDE_FLEET)
    set(required QUIET)
    if(NOT BIDE_FLEET STREQUAL AUTO OR BIDE_TESTS OR BIDE_FUZZ)
        set(required REQUIRED)
    endif()
    find_package(OpenSSL 1.1.1 ${required})
    find_package(PkgConfig ${required})
    if(PKG_CONFIG_FOUND)
        pkg_check_modules(BIDE_HIREDIS ${required} IMPORTED_TARGET hiredis>=0.14)
    endif()
    if(OPENSSL_FOUND AND BIDE_HIREDIS_FOUND)
        set(fleet_needs PkgConfig::BIDE_HIREDIS OpenSSL::SSL)
    else()
        message(STATUS "libbide-fleet is left out: it needs hiredis 0.14 or newer, OpenSSL and pkg-config")
    endif()
endif()
if(fleet_needs)
    set(script ${PROJECT_SOURCE_DIR}/lib/fleet/script.lua)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${script})
    file(READ ${script} bytes HEX)
    file(SHA1 ${script} sha1)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "((0x..,){20})" "\\1\n    " bytes "${bytes}")
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/fleet_script.c @ONLY CONTENT [[#include "fleet/script.h"

const char fleet_script[] = {
    @bytes@0};
const char fleet_script_sha1[] = "@sha1@";
]])
    list(APPEND fleet_sources ${PROJECT_BINARY_DIR}/fleet_script.c)
else()
    set(fleet_sources)
endif()
