// The only op of emulated graphs, `GdpEmulatedOp`. It takes a prescribed time,
// allocates outputs and workspace of prescribed sizes, and computes nothing.

#ifndef GDP_GRAPPLER_EVALUATION_EMULATION_KERNEL_H_
#define GDP_GRAPPLER_EVALUATION_EMULATION_KERNEL_H_

namespace gdp {

// Registers the op and its kernels for emulated GPUs and the host.
void RegisterKernels();

}  // namespace gdp

#endif  // GDP_GRAPPLER_EVALUATION_EMULATION_KERNEL_H_
