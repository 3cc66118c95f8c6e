# Installs headers, both libraries, stoker.pc, the CMake package, the programs with their man pages, and the documentation
# with examples and configs. All paths are relative, so the tree can be moved or installed with --prefix.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/stoker)

install(DIRECTORY include/stoker DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/include/stoker/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stoker)

# Two export sets: only users of the static library need the libraries behind it.
set_target_properties(stoker_shared PROPERTIES EXPORT_NAME shared)
set_target_properties(stoker_static PROPERTIES EXPORT_NAME static)
install(TARGETS stoker_shared EXPORT stokerSharedTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS stoker_static EXPORT stokerStaticTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT stokerSharedTargets NAMESPACE stoker:: DESTINATION ${package_dir})
install(EXPORT stokerStaticTargets NAMESPACE stoker:: DESTINATION ${package_dir})

configure_package_config_file(cmake/stokerConfig.cmake.in ${PROJECT_BINARY_DIR}/stokerConfig.cmake
    INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/stokerConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/stokerConfig.cmake ${PROJECT_BINARY_DIR}/stokerConfigVersion.cmake
    DESTINATION ${package_dir})

set(pc_modules ${STOKER_MODULES})
list(TRANSFORM pc_modules REPLACE "^[^=]*=" "")
list(JOIN pc_modules " " pc_modules)
set(pc_cuda "")
if(STOKER_CUDA_FOUND)
  get_target_property(pc_cuda CUDA::cudart_static IMPORTED_LOCATION)
  get_filename_component(pc_cuda ${pc_cuda} DIRECTORY)
  set(pc_cuda " -L${pc_cuda} -lcudart_static -lrt")
  if("stdc++" IN_LIST stoker_cuda_runtime)
    string(APPEND pc_cuda " -lstdc++")
  endif()
endif()
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/stoker.pc.in ${PROJECT_BINARY_DIR}/stoker.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/stoker.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

foreach(program loadbench stoker)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()

# Documentation, examples and configs have the same relative places as in the source tree, so that links between the documents
# and the paths in configs (to the digits in tests/data) stay valid.
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md" PATTERN man EXCLUDE)
file(GLOB examples CONFIGURE_DEPENDS examples/*.c examples/*.py examples/*.md examples/CMakeLists.txt) # no build folders
install(FILES ${examples} DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.yaml")
install(FILES tests/data/digits_images.npy tests/data/digits_labels.npy DESTINATION ${CMAKE_INSTALL_DOCDIR}/tests/data)

# Man pages are written in scdoc, docs/man/NAME.SECTION.scd; without scdoc there are none.
find_program(SCDOC scdoc)
file(GLOB man_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.scd)
if(SCDOC AND man_sources)
  foreach(source ${man_sources})
    string(REGEX REPLACE ".*/([^/]*\\.([0-9]))\\.scd$" "\\1;\\2" name ${source})
    list(GET name 1 section)
    list(GET name 0 name)
    add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/man/${name}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
        COMMAND sh -c "'${SCDOC}' < '${source}' > '${PROJECT_BINARY_DIR}/man/${name}'"
        DEPENDS ${source} VERBATIM)
    list(APPEND man_pages ${PROJECT_BINARY_DIR}/man/${name})
    install(FILES ${PROJECT_BINARY_DIR}/man/${name} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  endforeach()
  add_custom_target(man ALL DEPENDS ${man_pages})
endif()
