#include "gdp_grappler/evaluation/emulation/kernel.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "gdp_grappler/evaluation/emulation/timelines.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tensor.h"

namespace gdp {
namespace {

constexpr char kOp[] = "GdpEmulatedOp";
constexpr int64_t kNoInput = -1;
constexpr int64_t kNewMemory = -2;

struct DeleteStatus {
  void operator()(TF_Status* status) const { TF_DeleteStatus(status); }
};
using Status = std::unique_ptr<TF_Status, DeleteStatus>;

struct DeleteTensor {
  void operator()(TF_Tensor* tensor) const { TF_DeleteTensor(tensor); }
};
using Tensor = std::unique_ptr<TF_Tensor, DeleteTensor>;

// An op of the graph, on its device.
struct Kernel {
  int64_t op;
  // The input whose memory the outputs use, `kNoInput` if they use memory that
  // the op holds, `kNewMemory` if they use none that is there. On a GPU, only
  // outputs in the same memory, its own or that of the host, can use an input.
  int64_t aliased_input;
  // Numbers of inputs and outputs that a GPU has in its own memory.
  int64_t num_inputs, num_outputs;
  int64_t parameter_bytes;
  std::vector<int64_t> output_bytes;
  Tensor parameters;  // Allocated in the first step.
};

bool Ok(const Status& status) { return TF_GetCode(status.get()) == TF_OK; }

void* Create(TF_OpKernelConstruction* construction) {
  Status status(TF_NewStatus());
  auto kernel = std::make_unique<Kernel>();
  int32_t length = 0, unused = 0;
  TF_OpKernelConstruction_GetAttrInt64(construction, "op", &kernel->op,
                                       status.get());
  if (Ok(status)) {
    TF_OpKernelConstruction_GetAttrInt64(construction, "aliased_input",
                                         &kernel->aliased_input, status.get());
  }
  if (Ok(status)) {
    TF_OpKernelConstruction_GetAttrInt64(construction, "num_inputs",
                                         &kernel->num_inputs, status.get());
  }
  if (Ok(status)) {
    TF_OpKernelConstruction_GetAttrInt64(construction, "num_outputs",
                                         &kernel->num_outputs, status.get());
  }
  if (Ok(status)) {
    TF_OpKernelConstruction_GetAttrInt64(construction, "parameter_bytes",
                                         &kernel->parameter_bytes,
                                         status.get());
  }
  if (Ok(status)) {
    TF_OpKernelConstruction_GetAttrSize(construction, "output_bytes", &length,
                                        &unused, status.get());
  }
  if (Ok(status) && length > 0) {
    kernel->output_bytes.resize(length);
    TF_OpKernelConstruction_GetAttrInt64List(construction, "output_bytes",
                                             kernel->output_bytes.data(),
                                             length, status.get());
  }
  if (!Ok(status)) {
    TF_OpKernelConstruction_Failure(construction, status.get());
  }
  return kernel.release();
}

void Delete(void* kernel) { delete static_cast<Kernel*>(kernel); }

Tensor AllocateTemporary(TF_OpKernelContext* context, int64_t bytes,
                         const Status& status) {
  TF_AllocatorAttributes attributes{TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE, 0};
  return Tensor(
      TF_AllocateTemp(context, TF_UINT8, &bytes, 1, &attributes, status.get()));
}

// A unique address without memory, for outputs that an op does not allocate,
// such as the read of a variable.
void* NowhereOf(int64_t op) {
  return reinterpret_cast<void*>((op + 1) * int64_t{1 << 12});
}

void ForgetTensor(void*, size_t, void* tensor) {
  if (tensor != nullptr) TF_DeleteTensor(static_cast<TF_Tensor*>(tensor));
}

bool IsAlias(const Kernel& kernel, int64_t output) {
  if (kernel.aliased_input < 0) return kernel.aliased_input == kNoInput;
  return (kernel.aliased_input >= kernel.num_inputs) ==
         (output >= kernel.num_outputs);
}

// Sets an output that uses the memory of an input and keeps it alive.
void SetAlias(const Kernel& kernel, int index, TF_OpKernelContext* context,
              const Status& status) {
  TF_Tensor* input = nullptr;
  if (kernel.aliased_input != kNoInput) {
    TF_GetInput(context, static_cast<int>(kernel.aliased_input), &input,
                status.get());
    if (!Ok(status)) return;
  }
  void* place = input == nullptr ? nullptr : TF_TensorData(input);
  if (place == nullptr) {
    place = NowhereOf(kernel.op);
    TheMachine().SetWriter(place, kernel.op);
  }
  const int64_t bytes = kernel.output_bytes[index];
  const Tensor output(
      TF_NewTensor(TF_UINT8, &bytes, 1, place, bytes, ForgetTensor, input));
  TF_SetOutput(context, index, output.get(), status.get());
}

void AllocateOutput(const Kernel& kernel, int index,
                    TF_OpKernelContext* context, const Status& status) {
  const int64_t bytes = kernel.output_bytes[index];
  const Tensor output(TF_AllocateOutput(context, index, TF_UINT8, &bytes, 1,
                                        bytes, status.get()));
  if (Ok(status) && bytes > 0) {
    TheMachine().SetWriter(TF_TensorData(output.get()), kernel.op);
  }
}

// Allocates parameters and outputs of an op, and returns its workspace.
Tensor Allocate(Kernel& kernel, TF_OpKernelContext* context,
                int64_t workspace_bytes, const Status& status) {
  if (TheMachine().step_is_lost()) {
    TF_SetStatus(status.get(), TF_RESOURCE_EXHAUSTED,
                 "OOM when allocating for another op of this step");
    return nullptr;
  }
  Tensor workspace;
  if (kernel.parameter_bytes > 0 && kernel.parameters == nullptr) {
    kernel.parameters =
        AllocateTemporary(context, kernel.parameter_bytes, status);
    if (!Ok(status)) kernel.parameters.reset();
  }
  const int outputs = static_cast<int>(kernel.output_bytes.size());
  for (int i = 0; i < outputs && Ok(status); ++i) {
    if (IsAlias(kernel, i)) {
      SetAlias(kernel, i, context, status);
    } else {
      AllocateOutput(kernel, i, context, status);
    }
  }
  if (Ok(status) && workspace_bytes > 0) {
    workspace = AllocateTemporary(context, workspace_bytes, status);
  }
  if (!Ok(status)) TheMachine().LoseStep();
  return workspace;
}

void ComputeOnGpu(void* data, TF_OpKernelContext* context) {
  Kernel& kernel = *static_cast<Kernel*>(data);
  Status status(TF_NewStatus());
  SP_Stream stream = TF_GetStream(context, status.get());
  if (Ok(status)) {
    const Cost cost = TheMachine().CostOf(kernel.op, stream->device);
    TheClock().WaitUntil(TheMachine().EndOfDispatch(stream->device, kernel.op));
    const Tensor workspace =
        Allocate(kernel, context, cost.workspace_bytes, status);
    if (Ok(status)) {
      TheMachine().EnqueueKernel(stream, kernel.op, cost.duration_ns);
    }
  }
  if (!Ok(status)) TF_OpKernelContext_Failure(context, status.get());
}

void ComputeOnHost(void* data, TF_OpKernelContext* context) {
  Kernel& kernel = *static_cast<Kernel*>(data);
  Status status(TF_NewStatus());
  Machine& machine = TheMachine();
  const Cost cost = machine.CostOf(kernel.op, machine.host());
  const Tensor workspace =
      Allocate(kernel, context, cost.workspace_bytes, status);
  if (Ok(status)) {
    TheClock().WaitUntil(machine.EnqueueOnHost(kernel.op, cost.duration_ns));
  } else {
    TF_OpKernelContext_Failure(context, status.get());
  }
}

void InferShapes(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeInferenceContextSetUnknownShape(context, status);
}

// Ends the process on an error, because TensorFlow would continue without the
// op.
void Check(const Status& status) {
  if (Ok(status)) return;
  fprintf(stderr, "%s cannot be registered: %s\n", kOp,
          TF_Message(status.get()));
  abort();
}

}  // namespace

void RegisterKernels() {
  Status status(TF_NewStatus());
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(kOp);
  for (const char* attribute :
       {"num_inputs: int >= 0", "num_host_inputs: int >= 0",
        "num_outputs: int >= 0", "num_host_outputs: int >= 0", "op: int",
        "aliased_input: int", "parameter_bytes: int",
        "output_bytes: list(int)"}) {
    TF_OpDefinitionBuilderAddAttr(op, attribute);
  }
  TF_OpDefinitionBuilderAddInput(op, "inputs: num_inputs * uint8");
  TF_OpDefinitionBuilderAddInput(op, "host_inputs: num_host_inputs * uint8");
  TF_OpDefinitionBuilderAddOutput(op, "outputs: num_outputs * uint8");
  TF_OpDefinitionBuilderAddOutput(op, "host_outputs: num_host_outputs * uint8");
  // A stateful op is neither merged with other ops nor folded to a constant.
  TF_OpDefinitionBuilderSetIsStateful(op, true);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, InferShapes);
  TF_RegisterOpDefinition(op, status.get());
  Check(status);
  TF_KernelBuilder* on_gpu =
      TF_NewKernelBuilder(kOp, "GPU", Create, ComputeOnGpu, Delete);
  TF_KernelBuilder_HostMemory(on_gpu, "host_inputs");
  TF_KernelBuilder_HostMemory(on_gpu, "host_outputs");
  TF_RegisterKernelBuilder(kOp, on_gpu, status.get());
  Check(status);
  TF_RegisterKernelBuilder(
      kOp, TF_NewKernelBuilder(kOp, "CPU", Create, ComputeOnHost, Delete),
      status.get());
  Check(status);
}

}  // namespace gdp
