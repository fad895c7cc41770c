// The one op of emulated graphs, `GdpEmulatedOp`: it takes the time that the
// machine charges for it, allocates what it should, and computes nothing.

#ifndef GDP_GRAPPLER_EVALUATION_EMULATION_KERNEL_H_
#define GDP_GRAPPLER_EVALUATION_EMULATION_KERNEL_H_

namespace gdp {

// Tells TensorFlow of the op and its kernels for emulated GPUs and the host.
void RegisterKernels();

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_EMULATION_KERNEL_H_
