// Fingerprints of graphs, to recognize equal graphs.

#ifndef GDP_GRAPPLER_PLUGIN_GRAPH_FINGERPRINT_H_
#define GDP_GRAPPLER_PLUGIN_GRAPH_FINGERPRINT_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tsl/platform/hash.h"

namespace tensorflow {
namespace grappler {

inline uint64_t Hash(absl::string_view text, uint64_t seed) {
  return tsl::Hash64(text.data(), text.size(), seed);
}

// Hashes scalars, which most attributes are, directly: to serialize scalars
// would take most of the time of a fingerprint.
inline uint64_t HashAttribute(const std::string& key, const AttrValue& value) {
  const uint64_t seed = Hash(key, value.value_case());
  switch (value.value_case()) {
    case AttrValue::kI:
      return tsl::Hash64Combine(seed, value.i());
    case AttrValue::kB:
      return tsl::Hash64Combine(seed, value.b());
    case AttrValue::kType:
      return tsl::Hash64Combine(seed, value.type());
    case AttrValue::kS:
      return Hash(value.s(), seed);
    default:
      return Hash(value.SerializeAsString(), seed);
  }
}

// Debug information and the function library are left out. They contain numbers
// that change whenever the same Python function is traced again.
inline std::string Fingerprint(const GraphDef& graph) {
  uint64_t result = graph.node_size();
  for (const NodeDef& node : graph.node()) {
    for (const std::string* part : {&node.name(), &node.op(), &node.device()}) {
      result = Hash(*part, result);
    }
    for (const std::string& input : node.input()) {
      result = Hash(input, result);
    }
    // Adds the hashes of attributes, because a map has no fixed order.
    uint64_t attributes = 0;
    for (const auto& [key, value] : node.attr()) {
      attributes += HashAttribute(key, value);
    }
    result = tsl::Hash64Combine(result, attributes);
  }
  return absl::StrFormat("%016x", result);
}

}  // namespace grappler
}  // namespace tensorflow

#endif  // GDP_GRAPPLER_PLUGIN_GRAPH_FINGERPRINT_H_
