#ifndef GDP_GRAPPLER_GRAPH_NODE_TABLE_H_
#define GDP_GRAPPLER_GRAPH_NODE_TABLE_H_

#include <cstdint>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"

namespace tensorflow {
namespace grappler {

// A GraphDef of N nodes, with its edges and kinds of nodes.
struct NodeTable {
  GraphDef graph;
  // E times producer, output or -1 for control, consumer; sorted by consumer.
  std::vector<int32_t> edges;
  // [N], kind of each node, numbered from 0 by the first node. Nodes of one
  // kind differ only in name, inputs, attributes that are tensors, and the
  // attributes of `IsShared` in node_table.cc.
  std::vector<int32_t> kinds;
  // The first faulty node and the number of its faulty input; -1 and 0 if there
  // is none. The input is -1 if the node has the name of another node.
  int32_t faulty_node = -1;
  int32_t faulty_input = 0;
};

}  // namespace grappler
}  // namespace tensorflow

#endif  // GDP_GRAPPLER_GRAPH_NODE_TABLE_H_
