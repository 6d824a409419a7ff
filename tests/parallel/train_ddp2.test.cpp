// Two ranks against the reference trainer: flat buffers, reducer, clipping, SGD and EMA on the
// whole network.
#include <regex>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/comm/communicator.hpp"
#include "yolohpc/comm/world.hpp"
#include "yolohpc/loss/criterion.hpp"
#include "yolohpc/model/graph_spec.hpp"
#include "yolohpc/model/network.hpp"
#include "yolohpc/optim/clip.hpp"
#include "yolohpc/optim/ema.hpp"
#include "yolohpc/optim/optimizer.hpp"
#include "yolohpc/optim/param_groups.hpp"
#include "yolohpc/parallel/optimizer_views.hpp"
#include "yolohpc/parallel/rank_agreement.hpp"
#include "yolohpc/parallel/reducer.hpp"

#include "support/golden.hpp"

namespace yolohpc::parallel {
namespace {

using Json = nlohmann::json;

// The fixture gives its settings and tolerances in words: the number behind `key`.
double number_after(std::string const& text, std::string const& key) {
  std::smatch match;
  EXPECT_TRUE(std::regex_search(text, match, std::regex(key + " ([0-9.e+-]*[0-9])")))
      << "'" << key << "' is not in '" << text << "'";
  return match.empty() ? 0 : std::stod(match[1]);
}

std::vector<std::int64_t> shape_in(std::string const& text) {
  auto const begin = text.find('[');
  return Json::parse(text.substr(begin, text.find(']') - begin + 1))
      .get<std::vector<std::int64_t>>();
}

loss::Targets targets_from(Json const& labels, std::int64_t images) {
  auto const index = labels.at("batch_idx").get<std::vector<double>>();
  constexpr std::int64_t most = 8;
  loss::Targets targets{at::zeros({images, most, 4}), at::zeros({images, most}, at::kLong),
                        at::zeros({images, most}, at::kBool)};
  std::vector<std::int64_t> used(static_cast<std::size_t>(images), 0);
  for (std::size_t i = 0; i < index.size(); ++i) {
    auto const image = static_cast<std::int64_t>(index[i]);
    auto const row = used[static_cast<std::size_t>(image)]++;
    auto const box = labels.at("bboxes").at(i).get<std::vector<float>>();
    targets.boxes[image][row].copy_(at::tensor(box));
    targets.labels[image][row].fill_(labels.at("cls").at(i).get<double>());
    targets.valid[image][row].fill_(true);
  }
  return targets;
}

struct Tolerance {
  double loss, norm, parameters, running_var;
};

Tolerance tolerance_of(Json const& fixture, int step) {
  auto const first = fixture.at("tolerance").at("step0").get<std::string>();
  auto const later = fixture.at("tolerance").at("later").get<std::string>();
  auto const& text = step == 0 ? first : later;
  auto const loss = number_after(text, step == 0 ? "loss and grad norm rel" : "loss rel");
  return {loss, loss, number_after(text, "param_abs_sum rel"),
          number_after(text, "running_var rel")};
}

double sum_of(std::vector<at::Tensor> const& tensors) {
  double sum = 0;
  for (auto const& tensor : tensors) sum += tensor.sum(at::kDouble).item<double>();
  return sum;
}

void expect_relative(double got, double expected, double rtol, std::string const& what) {
  EXPECT_LE(std::abs(got - expected), rtol * std::abs(expected))
      << what << ": " << got << ", expected " << expected << ", relative bound " << rtol;
}

/// What one rank of the run holds.
class Trainer {
 public:
  Trainer(Json const& fixture, comm::Communicator& communicator, FlatSettings const& settings)
      : fixture_(fixture),
        network_(prepared(fixture)),
        groups_(grouped()),
        flat_(flatten(settings)),
        reducer_(flat_, communicator),
        optimizer_(optim::make_sgd(make_segments(flat_))),
        ema_({}, averaged()),
        clipper_({flat_.gradients()}, setting("clip")) {}

  /// \return  items of the loss times the images of this rank, norm before clipping
  std::pair<at::Tensor, double> step(at::Tensor const& images, loss::Targets const& targets) {
    flat_.zero_grad();
    reducer_.begin_micro_batch(MicroBatch::last);
    auto const loss = loss::detection_loss(network_.forward(images), targets);
    loss.total.backward();
    reducer_.finish();
    auto const clip = clipper_.clip_in_place(clipper_.square_sum());
    optimizer_->step(hyper(), clip.found_inf);
    ema_.update();
    return {loss.items * images.size(0), clip.norm.item<double>()};
  }

  FlatBuffers const& flat() const { return flat_; }
  base::NamedTensors state() const { return network_.state(); }
  std::vector<at::Tensor> running_var() const { return entries(model::StateKind::running_var); }
  std::vector<at::Tensor> ema_running_var() const {
    auto const count = static_cast<std::ptrdiff_t>(running_var().size());
    return {ema_.averages().end() - count, ema_.averages().end()};
  }

 private:
  static model::Network prepared(Json const& fixture) {
    model::Network network(model::load_graph("yolo11n"), {80});
    base::NamedTensors state;
    for (auto const& entry : network.state()) {
      state.push_back(
          {entry.name, testing::formula_state(entry.name, entry.tensor.sizes(),
                                              fixture.at("seed").get<std::uint32_t>())});
    }
    network.load_state(state, model::LoadMode::strict);
    network.initialise_head_biases();
    return network;
  }
  optim::GroupAssignment grouped() const {
    std::vector<optim::ParameterTraits> traits;
    for (auto const& p : network_.parameters())
      traits.push_back({p.name, p.tensor.dim(), p.is_norm});
    return optim::group_parameters(traits, optim::OptimizerKind::sgd);
  }
  FlatBuffers flatten(FlatSettings const& settings) const {
    std::vector<FlatParameter> parameters;
    auto const all = network_.parameters();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].trainable) continue;
      parameters.push_back(
          {all[i].name, all[i].tensor, groups_.group_of[i], static_cast<std::int64_t>(i)});
    }
    return FlatBuffers(parameters, settings);
  }
  std::vector<at::Tensor> entries(model::StateKind kind) const {
    std::vector<at::Tensor> result;
    for (auto const& entry : network_.entries()) {
      if (entry.kind == kind) result.push_back(entry.tensor);
    }
    return result;
  }
  std::vector<at::Tensor> averaged() const {
    std::vector<at::Tensor> result{flat_.parameters()};
    for (auto const& tensor : running_var()) result.push_back(tensor);
    return result;
  }
  double setting(std::string const& key) const {
    return number_after(fixture_.at("optimizer").get<std::string>(), key);
  }
  std::vector<optim::GroupHyper> hyper() const {
    std::vector<optim::GroupHyper> result;
    for (auto const& group : groups_.groups) {
      result.push_back({setting("lr") * group.lr_factor, group.decays ? setting("decay") : 0,
                        setting("momentum")});
    }
    return result;
  }

  Json const& fixture_;
  model::Network network_;
  optim::GroupAssignment groups_;
  FlatBuffers flat_;
  Reducer reducer_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  optim::Ema ema_;
  optim::GradientClipper clipper_;
};

void expect_parameters(Trainer const& trainer, Json const& record, double rtol) {
  auto const state = trainer.state();
  for (auto const& [name, expected] : record.at("param_abs_sum").items()) {
    auto const sum = base::find_tensor(state, name).abs().sum(at::kDouble).item<double>();
    expect_relative(sum, expected.get<double>(), rtol, name);
  }
}

class TrainDdp2 : public ::testing::Test {
 protected:
  /// All steps of one scenario. \return  the flat parameters at the end
  base::NamedTensors run(Json const& fixture, Json const& scenario, FlatSettings const& settings) {
    auto const rank = static_cast<std::size_t>(world_.rank());
    Trainer trainer(fixture, *communicator_, settings);
    auto const shape = shape_in(fixture.at("image").get<std::string>());
    auto const all =
        testing::formula_image("train_image", shape, fixture.at("seed").get<std::uint32_t>());
    auto const per_rank = shape[0] / world_.size();
    auto const images = all.narrow(0, world_.rank() * per_rank, per_rank)
                            .contiguous(at::MemoryFormat::ChannelsLast);
    auto const targets = targets_from(scenario.at("labels_per_rank").at(rank), per_rank);
    for (auto const& record : scenario.at("ranks").at(rank)) {
      auto const step = record.at("step").get<int>();
      auto const bound = tolerance_of(fixture, step);
      auto const what = scenario.at("name").get<std::string>() + ", step " + std::to_string(step);
      auto const [items, norm] = trainer.step(images, targets);
      auto const expected = at::tensor(record.at("loss_vector").get<std::vector<float>>());
      testing::expect_close(items, expected, bound.loss, 0, what + ", loss");
      expect_relative(norm, record.at("grad_norm_before_clip").get<double>(), bound.norm,
                      what + ", gradient norm");
      expect_parameters(trainer, record, bound.parameters);
      expect_relative(sum_of(trainer.running_var()), record.at("running_var_sum").get<double>(),
                      bound.running_var, what + ", running variances");
      expect_relative(sum_of(trainer.ema_running_var()),
                      record.at("ema_running_var_sum").get<double>(), bound.running_var,
                      what + ", averaged running variances");
      check_equal_over_ranks({{"parameters", trainer.flat().parameters()}}, what, *communicator_);
    }
    base::NamedTensors result;
    for (auto const& entry : trainer.flat().export_flat(trainer.flat().parameters())) {
      result.push_back({entry.name, entry.tensor.clone()});
    }
    return result;
  }

  comm::World world_;
  std::unique_ptr<comm::Communicator> communicator_ = comm::make_mpi_communicator(world_);
};

TEST_F(TrainDdp2, FollowsTheReferenceInBothScenarios) {
  auto const fixture = testing::golden_json("train_ddp2.json");
  ASSERT_EQ(fixture.at("world_size").get<int>(), world_.size());
  ASSERT_EQ(fixture.at("scenarios").size(), 2u);
  for (auto const& scenario : fixture.at("scenarios")) run(fixture, scenario, {});
}

// The sums of two ranks are the same bits in whatever bucket they travel.
TEST_F(TrainDdp2, BucketSizeChangesNothingBeyondRounding) {
  auto const fixture = testing::golden_json("train_ddp2.json");
  auto const& scenario = fixture.at("scenarios").at(0);
  FlatSettings one_bucket;
  one_bucket.least_buckets = 1;
  FlatSettings many_buckets;
  many_buckets.bucket_bytes = 1;
  auto const first = run(fixture, scenario, one_bucket);
  auto const second = run(fixture, scenario, many_buckets);
  // The norm is summed in the order of the buffer, so the clipping factor may differ in its last
  // bit.
  constexpr double rtol = 1e-5;
  for (std::size_t i = 0; i < first.size(); ++i) {
    testing::expect_close(second[i].tensor, first[i].tensor, rtol, 1e-6, first[i].name);
  }
}

}  // namespace
}  // namespace yolohpc::parallel
