# The programs: app/bide/bide.c is the command. A subcommand that needs no more than libbide and a policy file is linked
# into it and starts at once; every other subcommand X is a program bide-X beside it, as in git. app/X/command*.c hold the
# option table of X and its output, the other files of app/X its implementation. libbide is linked statically.
#
# run and budget are built twice: for --fleet and --otlp, bide executes bide-run or bide-budget, the same files linked with
# libbide-fleet and libbide-telemetry. Each program gets its implementation of --fleet from one of app/bide/fleet_*.c and
# that of --otlp from one of app/bide/otlp_*.c: see fleet.h and otlp.h in app/common.
set(inside run wait explain budget top)
set(twins)
if(fleet_needs OR telemetry_sources)
    list(APPEND twins run)
endif()
if(fleet_needs)
    list(APPEND twins budget)
endif()
set(outside chaos sim)
if(curl_needs)
    list(APPEND outside fetch demo metrics)
endif()
set(installed_programs)

# The implementation of a subcommand as a library: app/NAME without command*.c, with the libraries it needs.
function(add_part name)
    add_objects(bide_${name}_objects ${${name}_sources})
    target_link_libraries(bide_${name}_objects PRIVATE ${ARGN})
    add_library(bide_${name} STATIC $<TARGET_OBJECTS:bide_${name}_objects>)
    set_target_properties(bide_${name} PROPERTIES LINKER_LANGUAGE C)
    target_include_directories(bide_${name} PUBLIC include lib app)
    target_link_libraries(bide_${name} PUBLIC ${ARGN} bide_static)
endfunction()

function(add_cli_program name program)
    add_executable(${name} ${ARGN})
    target_compile_options(${name} PRIVATE ${warnings} ${hardening})
    target_link_options(${name} PRIVATE ${hardening_link})
    set_target_properties(${name} PROPERTIES OUTPUT_NAME ${program} POSITION_INDEPENDENT_CODE ON)
endfunction()

if(BIDE_CLI)
    add_part(conf m)
    add_part(chaos)
    add_part(run bide_conf)
    add_part(explain bide_conf)
    add_part(wait bide_conf)
    add_part(budget bide_conf)
    add_part(top bide_budget)
    add_part(chart m)
    add_part(protocol)
    add_part(sim bide_conf bide_chart bide_protocol)
    if(curl_needs)
        add_part(fetch bide_conf bide_curl_static)
        add_part(demo bide_conf bide_chart bide_chaos bide_curl_static)
        add_part(metrics bide_budget bide_telemetry_static)
    endif()

    add_objects(bide_cli_objects ${common_sources})
    add_library(bide_cli STATIC $<TARGET_OBJECTS:bide_cli_objects>)
    target_link_libraries(bide_cli PUBLIC bide_conf)

    add_cli_program(cli_bide bide app/bide/bide.c app/bide/topics.c app/bide/fleet_stub.c
                    app/bide/otlp_stub.c
    )
    foreach(name IN LISTS inside)
        target_sources(cli_bide PRIVATE ${${name}_command})
        target_link_libraries(cli_bide PRIVATE bide_${name})
    endforeach()
    target_link_libraries(cli_bide PRIVATE bide_cli)
    list(APPEND installed_programs cli_bide)

    foreach(name IN LISTS outside twins)
        add_cli_program(cli_${name} bide-${name} ${${name}_command} app/bide/program.c)
        target_compile_definitions(cli_${name} PRIVATE CLI_PROGRAM=cli_${name})
        target_link_libraries(cli_${name} PRIVATE bide_${name} bide_cli)
        list(APPEND installed_programs cli_${name})
    endforeach()

    set(fleet_absent app/bide/fleet_stub.c app/bide/fleet_missing.c)
    foreach(name run budget fetch)
        if(TARGET cli_${name} AND fleet_needs)
            target_sources(cli_${name} PRIVATE app/bide/fleet_linked.c)
            target_link_libraries(cli_${name} PRIVATE bide_fleet_static)
        elseif(TARGET cli_${name})
            target_sources(cli_${name} PRIVATE ${fleet_absent})
        endif()
    endforeach()

    set(otlp_absent app/bide/otlp_stub.c app/bide/otlp_missing.c)
    foreach(name run fetch)
        if(TARGET cli_${name} AND telemetry_sources)
            target_sources(cli_${name} PRIVATE app/bide/otlp_linked.c)
            target_link_libraries(cli_${name} PRIVATE bide_telemetry_static)
        elseif(TARGET cli_${name})
            target_sources(cli_${name} PRIVATE ${otlp_absent})
        endif()
    endforeach()

    # Man pages and completions: printed by a program that contains all option tables.
    set(all run fetch wait budget top metrics explain sim demo chaos) # as help lists them
    if(NOT curl_needs)
        list(REMOVE_ITEM all fetch demo metrics)
    endif()
    list(TRANSFORM all PREPEND &cli_ OUTPUT_VARIABLE tables)
    list(JOIN tables "," tables)
    set(table_sources)
    foreach(name IN LISTS all)
        list(APPEND table_sources ${${name}_command})
    endforeach()
    list(TRANSFORM all PREPEND bide_ OUTPUT_VARIABLE table_libraries)
    add_executable(cli_docs tools/cli-docs.c tools/cli-docs-man.c tools/cli-docs-shell.c app/bide/topics.c ${table_sources}
                            ${fleet_absent} ${otlp_absent})
    target_compile_options(cli_docs PRIVATE ${warnings})
    target_compile_definitions(cli_docs PRIVATE CLI_TABLES=${tables})
    target_link_libraries(cli_docs PRIVATE ${table_libraries} bide_cli)
    set_target_properties(cli_docs PROPERTIES OUTPUT_NAME cli-docs)

    set(pages_dir ${PROJECT_BINARY_DIR}/pages)
    set(completions)
    function(add_completion shell file)
        add_custom_command(
            OUTPUT ${pages_dir}/${file}
            COMMAND cli_docs ${shell} > ${pages_dir}/${file}
            DEPENDS cli_docs
            VERBATIM
        )
        list(APPEND completions ${pages_dir}/${file})
        set(completions ${completions} PARENT_SCOPE)
    endfunction()
    add_completion(bash bide.bash)
    add_completion(zsh _bide)
    add_completion(fish bide.fish)

    # Without scdoc there are no man pages; under CI its absence is an error.
    find_program(BIDE_SCDOC scdoc)
    set(man_pages)
    function(add_man_page name file)
        add_custom_command(
            OUTPUT ${pages_dir}/${file}
            COMMAND cli_docs man ${name} > ${pages_dir}/${file}.scd
            COMMAND ${BIDE_SCDOC} < ${pages_dir}/${file}.scd > ${pages_dir}/${file}
            BYPRODUCTS ${pages_dir}/${file}.scd
            DEPENDS cli_docs
            VERBATIM
        )
        list(APPEND man_pages ${pages_dir}/${file})
        set(man_pages ${man_pages} PARENT_SCOPE)
    endfunction()
    if(BIDE_SCDOC)
        foreach(name IN LISTS all)
            add_man_page(${name} bide-${name}.1)
        endforeach()
        add_man_page(bide bide.1)
        add_man_page(bide.conf bide.conf.5)
    elseif("$ENV{CI}" STREQUAL "true")
        message(FATAL_ERROR "scdoc is missing: there would be no man pages")
    else()
        message(STATUS "the man pages are left out: they need scdoc")
    endif()
    file(MAKE_DIRECTORY ${pages_dir})
    add_custom_target(cli_pages ALL DEPENDS ${completions} ${man_pages})
endif()
