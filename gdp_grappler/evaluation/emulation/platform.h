// The emulated GPUs as TensorFlow's StreamExecutor C interface wants them: a
// platform of type GPU. Memory is address space that nobody can touch, as much
// as the device has, so that TensorFlow's own allocator finds out what fits.

#ifndef GDP_GRAPPLER_EVALUATION_EMULATION_PLATFORM_H_
#define GDP_GRAPPLER_EVALUATION_EMULATION_PLATFORM_H_

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"

namespace gdp {

// Fills in all that TensorFlow asks of a platform.
void RegisterPlatform(SE_PlatformRegistrationParams* params);

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_EMULATION_PLATFORM_H_
