// Lets each GPU start its ops in the order of the graph, for start_order.py and
// the pass.

#ifndef GDP_GRAPPLER_GRAPH_START_ORDER_H_
#define GDP_GRAPPLER_GRAPH_START_ORDER_H_

#include <string>
#include <unordered_set>

#include "tensorflow/core/framework/graph.pb.h"

namespace tensorflow {
namespace grappler {

// Adds a tree of ops without effect to each GPU that the graph uses.
//
// In TensorFlow's executor all ops without inputs follow one source node. A
// node keeps its first `kOrdered` followers in their order. If there are more,
// it keeps them in a hash table by address. So the order in which a step starts
// would differ from process to process, and with it the seconds of the step. In
// the tree each op has few followers, and the leaves are the ops that start.
void OrderStarts(GraphDef* graph);

// Whether `OrderStarts` added ops to a graph, which a program then imported.
bool HasStartOrder(const GraphDef& graph);

// Removes the ops that `OrderStarts` added, except those whose names are in
// `kept`. They belong to the placement of that time, and would be in the way of
// another one. What an op waited for through them it then waits for directly.
void DropStartOrder(const std::unordered_set<std::string>& kept,
                    GraphDef* graph);

}  // namespace grappler
}  // namespace tensorflow

#endif  // GDP_GRAPPLER_GRAPH_START_ORDER_H_
