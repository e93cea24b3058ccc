# Installation: find_package(bide) gives bide::bide and bide::bide_static, its component http gives bide::http and
# bide::http_static; pkg-config knows bide and bide-http.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/bide)

# bide.h includes all headers of libbide. The others are those of libbide-http: without it they stay at home.
if(NOT TARGET bide_http)
    file(STRINGS include/bide/bide.h lines REGEX "^#include <bide/")
    string(REGEX MATCHALL "bide/[a-z_]+\\.h" public_headers "bide/bide.h ${lines}")
    list(TRANSFORM public_headers PREPEND ${PROJECT_SOURCE_DIR}/include/)
endif()
install(FILES ${public_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/bide)

install(TARGETS bide bide_static EXPORT bideTargets)
install(EXPORT bideTargets NAMESPACE bide:: DESTINATION ${package_dir})
if(TARGET bide_http)
    install(TARGETS bide_http bide_http_static EXPORT bideHttpTargets)
    install(EXPORT bideHttpTargets NAMESPACE bide:: DESTINATION ${package_dir})
endif()
if(installed_programs)
    install(TARGETS ${installed_programs})
    foreach(page IN LISTS man_pages)
        cmake_path(GET page EXTENSION LAST_ONLY section)
        string(REPLACE . man section ${section})
        install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/${section})
    endforeach()
    set(bash_dir ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${pages_dir}/bide.bash DESTINATION ${bash_dir} RENAME bide)
    install(FILES ${pages_dir}/_bide DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
    install(FILES ${pages_dir}/bide.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

configure_package_config_file(cmake/bideConfig.cmake.in bideConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(bideConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/bideConfig.cmake ${PROJECT_BINARY_DIR}/bideConfigVersion.cmake
        DESTINATION ${package_dir})

# A .pc file finds its prefix from where it lies, so an installed tree can be moved. An absolute directory stays as it
# is.
set(pc_dir ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${pc_dir} OUTPUT_VARIABLE pc_to_prefix)
cmake_path(APPEND pc_libdir "\${prefix}" ${CMAKE_INSTALL_LIBDIR})
cmake_path(APPEND pc_includedir "\${prefix}" ${CMAKE_INSTALL_INCLUDEDIR})
set(pc_files bide.pc)
if(TARGET bide_http)
    list(APPEND pc_files bide-http.pc)
endif()
foreach(file IN LISTS pc_files)
    configure_file(cmake/${file}.in ${file} @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
