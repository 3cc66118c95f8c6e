/* safetensors_test.h: what tests may change in the writer of safetensors. */
#ifndef STKI_SAFETENSORS_TEST_H
#define STKI_SAFETENSORS_TEST_H

#include <stdint.h>

/* The longest header that the writer of safetensors makes; 100,000,000 otherwise. */
void stki_safetensors_test_header_limit(int64_t bytes);

#endif
