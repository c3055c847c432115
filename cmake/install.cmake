# What `make install`, the package and the tarball bring beside the program: the unit, manual
# pages, completion, examples. All of it is of the component `program`; the client library is the
# component `client`.
#
# The manual pages are written by the program that they describe (weir help --man), as the target
# `manuals`.

set(manuals ${CMAKE_BINARY_DIR}/man)
add_custom_command(
    OUTPUT ${manuals}/written
    COMMAND ${CMAKE_SOURCE_DIR}/scripts/manuals $<TARGET_FILE:weir> ${manuals}
    DEPENDS weir ${CMAKE_SOURCE_DIR}/scripts/manuals
    COMMENT "Writing the manual pages"
    VERBATIM)
add_custom_target(manuals DEPENDS ${manuals}/written)

install(TARGETS weir RUNTIME DESTINATION bin COMPONENT program)
install(DIRECTORY ${manuals}/ DESTINATION share/man COMPONENT program
        FILES_MATCHING PATTERN "*.[15]")
install(FILES deploy/completion/weir.bash RENAME weir
        DESTINATION share/bash-completion/completions COMPONENT program)
install(FILES deploy/completion/_weir DESTINATION share/zsh/site-functions COMPONENT program)
install(FILES deploy/completion/weir.fish
        DESTINATION share/fish/vendor_completions.d COMPONENT program)
install(DIRECTORY examples/ DESTINATION share/doc/weir/examples COMPONENT program
        PATTERN "node_modules" EXCLUDE PATTERN "__pycache__" EXCLUDE)
install(FILES include/weir/agent.h DESTINATION include/weir COMPONENT program)
install(FILES README.md DESTINATION share/doc/weir COMPONENT program)

# The unit names the program by its whole path, which is known only now (--prefix).
install(CODE "
    get_filename_component(prefix \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
    set(unit \"\$ENV{DESTDIR}\${prefix}/lib/systemd/system/weir.service\")
    message(STATUS \"Installing: \${unit}\")
    file(READ \"${CMAKE_SOURCE_DIR}/deploy/weir.service\" text)
    string(REPLACE /usr/local/bin/weir \"\${prefix}/bin/weir\" text \"\${text}\")
    file(WRITE \"\${unit}\" \"\${text}\")" COMPONENT program)
