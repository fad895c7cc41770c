// Sizes of shapes, which may be partly unknown.

#ifndef GDP_GRAPPLER_GRAPH_SHAPE_SIZES_H_
#define GDP_GRAPPLER_GRAPH_SHAPE_SIZES_H_

#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/grappler/costs/op_performance_data.pb.h"

namespace tensorflow {
namespace grappler {

// Null if an op has no such input.
inline const TensorShapeProto* InputShape(const OpInfo& op, int index) {
  return index < op.inputs_size() ? &op.inputs(index).shape() : nullptr;
}

inline const TensorShapeProto* OutputShape(const OpInfo& op, int index) {
  return index < op.outputs_size() ? &op.outputs(index).shape() : nullptr;
}

// Size of a dimension, counted from the last one; 0 if unknown.
inline double FromLast(const TensorShapeProto* shape, int index) {
  if (!shape || shape->unknown_rank() || shape->dim_size() <= index) return 0;
  const auto size = shape->dim(shape->dim_size() - 1 - index).size();
  return size > 0 ? static_cast<double>(size) : 0;
}

// Number of elements of a tensor; 0 if unknown.
inline double SizeOf(const TensorShapeProto* shape) {
  if (!shape || shape->unknown_rank()) return 0;
  double result = 1;
  for (const auto& dim : shape->dim()) {
    result *= dim.size() > 0 ? static_cast<double>(dim.size()) : 0;
  }
  return result;
}

}  // namespace grappler
}  // namespace tensorflow

#endif  // GDP_GRAPPLER_GRAPH_SHAPE_SIZES_H_
