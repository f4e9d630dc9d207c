# tdm_folder(<name> MAY_INCLUDE <folders> LINK <libraries>): an object library of <name>/*.c.
#
# A header is included as "folder/topic.h". For that, the build tree has one folder of links for each
# source folder, and only those named in MAY_INCLUDE are on the include path: a forbidden include does
# not compile.
set(TDM_LINKS ${CMAKE_BINARY_DIR}/links)

function(tdm_link_folder name)
    file(MAKE_DIRECTORY ${TDM_LINKS}/${name})
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${name} ${TDM_LINKS}/${name}/${name} SYMBOLIC)
endfunction()

function(tdm_folder name)
    cmake_parse_arguments(FOLDER "" "" "MAY_INCLUDE;LINK" ${ARGN})
    tdm_link_folder(${name})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}/*.c)
    add_library(tdm_${name} OBJECT ${sources})
    target_include_directories(tdm_${name} PRIVATE ${CMAKE_SOURCE_DIR}/include
                               ${TDM_LINKS}/${name})
    foreach(other ${FOLDER_MAY_INCLUDE})
        target_include_directories(tdm_${name} PRIVATE ${TDM_LINKS}/${other})
    endforeach()
    target_link_libraries(tdm_${name} PRIVATE ${FOLDER_LINK})
    set_property(GLOBAL APPEND PROPERTY TDM_FOLDERS ${name})
    set_property(GLOBAL APPEND PROPERTY TDM_LIBRARIES ${FOLDER_LINK})
    if(EXISTS ${CMAKE_SOURCE_DIR}/${name}/folder.cmake)
        include(${CMAKE_SOURCE_DIR}/${name}/folder.cmake)
    endif()
endfunction()

# libtandem.so exports the public functions; tandem_all is the same objects for the program and the
# tests, which see the folders' own headers too.
function(tdm_library)
    get_property(folders GLOBAL PROPERTY TDM_FOLDERS)
    get_property(libraries GLOBAL PROPERTY TDM_LIBRARIES)
    list(REMOVE_DUPLICATES libraries)
    set(objects)
    foreach(folder ${folders})
        list(APPEND objects $<TARGET_OBJECTS:tdm_${folder}>)
    endforeach()
    add_library(tandem_all STATIC ${objects})
    target_link_libraries(tandem_all PUBLIC ${libraries})
    add_library(tandem_shared SHARED ${objects})
    set_target_properties(tandem_shared PROPERTIES OUTPUT_NAME tandem VERSION ${PROJECT_VERSION}
                          SOVERSION 0)
    target_link_libraries(tandem_shared PRIVATE ${libraries})
    target_include_directories(tandem_shared PUBLIC ${CMAKE_SOURCE_DIR}/include)
endfunction()
