# Files written by the original libraries, read by stoker: one test for each format that has a reader.
file(GLOB oracle_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
stoker_test_program(oracle_files ${oracle_sources})
foreach(format npy npz pt safetensors hdf5 beton webdataset tokens_llmc tokens_raw tokens_megatron raw jpeg jpeg_folder)
  add_test(NAME oracle_${format}
           COMMAND oracle_files ${CMAKE_CURRENT_LIST_DIR}/manifest.json --format ${format})
  set_tests_properties(oracle_${format} PROPERTIES LABELS "io;oracle" TIMEOUT ${STOKER_TEST_TIMEOUT})
endforeach()
