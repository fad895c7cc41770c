#ifndef GDP_GRAPPLER_GRAPH_NODE_TABLE_H_
#define GDP_GRAPPLER_GRAPH_NODE_TABLE_H_

#include <cstdint>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"

namespace tensorflow {
namespace grappler {

// A GraphDef of N nodes, and what takes a look at every node and input.
struct NodeTable {
  GraphDef graph;
  // E times producer, output or -1 for control, consumer; by consumers.
  std::vector<int32_t> edges;
  // [N], nodes that do not differ but in name, inputs, values of tensors and
  // what they share or are numbered by have the same number, 0 .. by first
  // node.
  std::vector<int32_t> kinds;
  // The first node at fault and which of its inputs; -1, 0 where none is, and
  // input -1 if it has the name of another node.
  int32_t faulty_node = -1;
  int32_t faulty_input = 0;
};

}  // namespace grappler
}  // namespace tensorflow

#endif  // GDP_GRAPPLER_GRAPH_NODE_TABLE_H_
