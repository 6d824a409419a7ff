// Block and Head, the layers of a graph, and the table of their types.
//
// Letters: B images, H W cells of a map.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/model/graph_spec.hpp"
#include "yolohpc/model/head_output.hpp"
#include "yolohpc/model/pass.hpp"

#include "scope.hpp"

namespace yolohpc::model {

/// A layer: maps in, one map out.
class Block {
 public:
  virtual ~Block() = default;
  /// \param inputs  (B, C_i, H_i, W_i), as many as the graph says
  virtual at::Tensor forward(std::vector<at::Tensor> const& inputs, Pass const& pass) const = 0;
};

/// The last layer: maps in, predictions out.
class Head {
 public:
  virtual ~Head() = default;
  virtual HeadOutput forward(std::vector<at::Tensor> const& inputs, Pass const& pass) const = 0;
  /// Biases that start the class scores at the frequency of objects.
  virtual void initialise_biases() = 0;
  /// Prefix of the class branch's parameters, relative to the layer.
  virtual std::string class_branch() const = 0;
  /// Multiply-adds of decoding one anchor point, times two: counted with the convolutions.
  virtual std::int64_t decode_flops_per_anchor() const = 0;
};

/// What is known of a map before anything runs.
struct Feature {
  std::int64_t channels = 0;
  std::int64_t stride_px = 1;
};

/// What a block type is asked to build.
struct BlockRequest {
  LayerSpec const& layer;
  std::string origin;  ///< of the graph, for messages
  std::vector<Feature> inputs;
  Scope scope;
  std::int64_t classes = 0;

  /// \throws Error (usage)  with file, line and block before `parts`
  template <typename... Parts>
  [[noreturn]] void fail(Parts const&... parts) const {
    base::fail(base::ExitCode::usage, origin, " line ", layer.line, " (", layer.block,
               "): ", parts...);
  }
  /// An argument that has to be a whole number of at least 1.
  std::int64_t count(std::string const& name, std::int64_t otherwise) const;
  bool flag(std::string const& name, bool otherwise) const;
  double fraction(std::string const& name, double otherwise) const;
  /// The only input. \throws Error (usage)  there are several
  Feature input() const;
  /// Output channels. \throws Error (usage)  the file does not give them
  std::int64_t out() const;
};

struct BuiltBlock {
  std::unique_ptr<Block> block;
  Feature output;
};

struct BlockType {
  std::vector<std::string> arguments;  ///< beside block, from, out
  bool takes_repeats = false;
  BuiltBlock (*build)(BlockRequest const&) = nullptr;
};

struct HeadType {
  std::vector<std::string> arguments;
  std::unique_ptr<Head> (*build)(BlockRequest const&) = nullptr;
};

/// Every block a graph may name. Another block is a class and a row here.
std::map<std::string, BlockType> const& block_types();
std::map<std::string, HeadType> const& head_types();

/// \throws Error (usage)  the layer has an argument that its type does not know
void check_arguments(BlockRequest const& request, std::vector<std::string> const& known,
                     bool takes_repeats);

}  // namespace yolohpc::model
