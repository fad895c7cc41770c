// The emulated GPUs as a platform of type GPU for TensorFlow's StreamExecutor C
// interface. Memory is address space without access, of the size of the
// device's memory, so that TensorFlow's own allocator finds out what fits.

#ifndef GDP_GRAPPLER_EVALUATION_EMULATION_PLATFORM_H_
#define GDP_GRAPPLER_EVALUATION_EMULATION_PLATFORM_H_

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"

namespace gdp {

// Fills in the fields that TensorFlow requires of a platform.
void RegisterPlatform(SE_PlatformRegistrationParams* params);

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_EMULATION_PLATFORM_H_
