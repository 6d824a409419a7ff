// Training steps of the whole engine on one rank against the trajectories of the reference trainer.
//
// Network, loss, flat buffers, clipping, optimizer, EMA and schedule are put together as the
// trainer does. Every number of train_{sgd,adamw,musgd,recipe}.json is compared, within the
// tolerances that stand there.
#include <cmath>
#include <map>
#include <optional>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/loss/criterion.hpp"
#include "yolohpc/model/network.hpp"
#include "yolohpc/optim/clip.hpp"
#include "yolohpc/optim/ema.hpp"
#include "yolohpc/optim/optimizer.hpp"
#include "yolohpc/optim/schedule.hpp"
#include "yolohpc/parallel/flat_buffers.hpp"
#include "yolohpc/parallel/optimizer_views.hpp"

#include "support/golden.hpp"

namespace yolohpc {
namespace {

using nlohmann::json;

/// "yolo11n nc=80" -> graph name and number of classes.
std::pair<std::string, std::int64_t> parse_model(std::string const& text) {
  auto const space = text.find(" nc=");
  return {text.substr(0, space), std::stoll(text.substr(space + 4))};
}

struct ImageSpec {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// An object with name and shape, or text that begins with "train_image [2,3,128,128]".
ImageSpec parse_image(json const& image) {
  if (image.is_object()) return {image.at("name"), image.at("shape")};
  auto const text = image.get<std::string>();
  auto const open = text.find('[');
  auto const shape = json::parse(text.substr(open, text.find(']') - open + 1));
  return {text.substr(0, text.find(' ')), shape};
}

loss::Targets parse_labels(json const& labels, std::int64_t images) {
  auto const& owner = labels.at("batch_idx");
  auto const most = static_cast<std::int64_t>(owner.size());
  loss::Targets targets{at::zeros({images, most, 4}),
                        at::zeros({images, most}, at::TensorOptions().dtype(at::kLong)),
                        at::zeros({images, most}, at::TensorOptions().dtype(at::kBool))};
  std::vector<std::int64_t> used(static_cast<std::size_t>(images));
  for (std::size_t i = 0; i < owner.size(); ++i) {
    auto const image = owner[i].get<std::int64_t>();
    auto const row = used[static_cast<std::size_t>(image)]++;
    for (std::int64_t side = 0; side < 4; ++side) {
      targets.boxes[image][row][side] =
          labels.at("bboxes_xywh_normalised")[i][static_cast<std::size_t>(side)].get<double>();
    }
    targets.labels[image][row] = labels.at("cls")[i].get<std::int64_t>();
    targets.valid[image][row] = true;
  }
  return targets;
}

optim::OptimizerKind parse_kind(std::string const& name) {
  if (name == "MuSGD") return optim::OptimizerKind::musgd;
  return name == "AdamW" ? optim::OptimizerKind::adamw : optim::OptimizerKind::sgd;
}

/// What an Engine is made of besides the fixture's network and labels.
struct EngineSettings {
  optim::OptimizerKind optimizer;
  optim::EmaSettings ema;
  double max_norm;
  parallel::WeightLayout layout;
};

/// The parts of a trainer on one rank.
class Engine {
 public:
  Engine(json const& fixture, EngineSettings const& settings)
      : network_(make_network(fixture)), seed_(fixture.at("seed")), layout_(settings.layout) {
    auto const parameters = network_.parameters();
    std::vector<optim::ParameterTraits> traits;
    for (auto const& p : parameters) traits.push_back({p.name, p.tensor.dim(), p.is_norm});
    auto const assignment = optim::group_parameters(traits, settings.optimizer);
    groups_ = assignment.groups;
    std::vector<parallel::FlatParameter> trained;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i].trainable) continue;
      trained.push_back({parameters[i].name, parameters[i].tensor, assignment.group_of[i],
                         static_cast<std::int64_t>(i)});
    }
    flat_.emplace(trained, parallel::FlatSettings{.layout = layout_});
    clipper_.emplace(std::vector<at::Tensor>{flat_->gradients()}, settings.max_norm);
    optimizer_ = optim::make_optimizer(settings.optimizer, parallel::make_segments(*flat_),
                                       parallel::make_kernels(*flat_, groups_));
    make_ema(settings.ema);
    image_ = parse_image(fixture.at("image"));
    targets_ = parse_labels(fixture.at("labels"), image_.shape[0]);
  }

  std::vector<optim::ParameterGroup> const& groups() const { return groups_; }
  optim::Ema const& ema() const { return *ema_; }

  /// Forward and backward pass; gradients add up. \return  (3) loss parts times images, float64
  at::Tensor accumulate(std::int64_t image_seed_offset) {
    auto const seed = static_cast<std::uint32_t>(seed_ + image_seed_offset);
    auto const images = testing::formula_image(image_.name, image_.shape, seed);
    bool const is_channels_last = layout_ == parallel::WeightLayout::channels_last;
    auto const output = network_.forward(images.contiguous(
        is_channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous));
    auto const loss = loss::detection_loss(output, targets_);
    loss.total.backward();
    auto const parts = loss.items.to(at::kDouble) * static_cast<double>(image_.shape[0]);
    total_ = loss.total.item<double>();
    return parts;
  }
  double loss_total() const { return total_; }

  /// Norm of a parameter's gradient as it stands.
  double gradient_norm(std::string const& name) const {
    auto const gradient = base::find_tensor(views(flat_->gradients()), name);
    return gradient.to(at::kDouble).norm().item<double>();
  }

  /// Clip, step, zero, average. \return  the norm of the gradient before clipping
  double update(std::vector<optim::GroupHyper> const& hyper) {
    auto const clipped = clipper_->clip_in_place(clipper_->square_sum());
    optimizer_->step(hyper, clipped.found_inf);
    flat_->zero_grad();
    ema_->update();
    return clipped.norm.item<double>();
  }

  /// Row-major copies in double of the state-dict entries.
  std::map<std::string, at::Tensor> live() const {
    std::map<std::string, at::Tensor> result;
    for (auto const& [name, tensor] : network_.state()) {
      result[name] = tensor.detach().to(at::kDouble).contiguous();
    }
    return result;
  }
  std::map<std::string, at::Tensor> averaged() const {
    std::map<std::string, at::Tensor> result;
    for (auto const& [name, tensor] : views(ema_->averages()[0])) {
      result[name] = tensor.to(at::kDouble).contiguous();
    }
    for (std::size_t i = 0; i < constants_.size(); ++i) {
      result[constants_[i]] = ema_->averages()[i + 1].to(at::kDouble).contiguous();
    }
    return result;
  }
  /// Names of all parameters, the frozen kernel included.
  bool is_parameter(std::string const& name) const {
    return !name.ends_with("running_mean") && !name.ends_with("running_var") &&
           !name.ends_with("num_batches_tracked");
  }

 private:
  static model::Network make_network(json const& fixture) {
    auto const [graph, classes] = parse_model(fixture.at("model"));
    model::Network network(model::load_graph(graph), model::ClassCount{classes});
    base::NamedTensors weights;
    for (auto const& [name, tensor] : network.state()) {
      weights.push_back({name, testing::formula_state(name, tensor.sizes(), fixture.at("seed"))});
    }
    network.load_state(weights, model::LoadMode::strict);
    network.initialise_head_biases();
    network.set_training(true);
    return network;
  }

  /// The parts of a tensor laid out as the flat buffers, by parameter.
  base::NamedTensors views(at::Tensor const& flat) const {
    base::NamedTensors result;
    for (std::size_t i = 0; i < flat_->slots().size(); ++i) {
      result.push_back({flat_->slots()[i].name, flat_->view(flat, i)});
    }
    return result;
  }

  /// Averages the flat parameters and every other float entry: running statistics and frozen
  /// parameters.
  void make_ema(optim::EmaSettings const& settings) {
    std::vector<at::Tensor> tensors = {flat_->parameters()};
    auto const trained = views(flat_->parameters());
    for (auto const& [name, tensor] : network_.state()) {
      if (tensor.scalar_type() != at::kFloat) continue;
      if (base::find_tensor(trained, name).defined()) continue;
      tensors.push_back(tensor);
      constants_.push_back(name);
    }
    ema_.emplace(settings, tensors);
  }

  model::Network network_;
  std::int64_t seed_;
  parallel::WeightLayout layout_;
  std::vector<optim::ParameterGroup> groups_;
  std::optional<parallel::FlatBuffers> flat_;
  std::optional<optim::GradientClipper> clipper_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::vector<std::string> constants_;
  std::optional<optim::Ema> ema_;
  ImageSpec image_;
  loss::Targets targets_;
  double total_ = 0;
};

/// Compares with a relative bound and keeps the worst share of it, which tells how near a failure
/// was.
class Comparison {
 public:
  void relative(double got, json const& expected, double bound, std::string const& what) {
    absolute(got, expected, bound * std::abs(expected.get<double>()), what);
  }
  void absolute(double got, json const& expected, double bound, std::string const& what) {
    double const value = expected;
    double const difference = std::abs(got - value);
    EXPECT_LE(difference, bound) << what << ": got " << got << ", expected " << value;
    double const share = bound > 0 ? difference / bound : 0;
    if (share > worst_share_) {
      worst_share_ = share;
      worst_ = what;
    }
  }
  void report(std::string const& name) const {
    std::printf("%s: worst share of a tolerance %.3f (%s)\n", name.c_str(), worst_share_,
                worst_.c_str());
  }

 private:
  double worst_share_ = 0;
  std::string worst_;
};

/// Bounds in force at one step.
class Bounds {
 public:
  Bounds(json const& tolerance, std::size_t step) : tolerance_(tolerance), step_(step) {}
  double at(char const* key) const { return tolerance_.at(key).at(step_); }

 private:
  json const& tolerance_;
  std::size_t step_;
};

/// [sum, abs sum, first, element numel / 2, last] of one tensor.
void compare_record(Comparison& comparison, at::Tensor const& tensor, json const& record,
                    Bounds const& bounds, std::string const& what) {
  auto const flat = tensor.view(-1);
  double const relative = bounds.at("params_abs_sum_rel");
  double const sample = bounds.at("params_sample_abs");
  // A sum may cancel, so its bound is the one of the absolute sum.
  comparison.absolute(flat.sum().item<double>(), record[0], relative * record[1].get<double>(),
                      what + " sum");
  comparison.relative(flat.abs().sum().item<double>(), record[1], relative, what + " abs sum");
  std::int64_t const at[] = {0, flat.numel() / 2, flat.numel() - 1};
  for (std::size_t i = 0; i < 3; ++i) {
    comparison.absolute(flat[at[i]].item<double>(), record[i + 2], sample, what + " sample");
  }
}

/// Sums over a whole state: parameters, squares, running statistics.
void compare_totals(Comparison& comparison, Engine const& engine,
                    std::map<std::string, at::Tensor> const& state, json const& totals,
                    Bounds const& bounds, std::string const& what) {
  double sum = 0, abs_sum = 0, squares = 0, mean = 0, variance = 0;
  for (auto const& [name, tensor] : state) {
    double const total = tensor.sum().item<double>();
    if (name.ends_with("running_mean")) mean += total;
    if (name.ends_with("running_var")) variance += total;
    if (!engine.is_parameter(name)) continue;
    sum += total;
    abs_sum += tensor.abs().sum().item<double>();
    squares += tensor.square().sum().item<double>();
  }
  comparison.absolute(sum, totals.at("param_sum"), bounds.at("params_abs_sum_rel") * abs_sum,
                      what + " param sum");
  comparison.relative(squares, totals.at("param_sq_sum"), bounds.at("param_sq_sum_rel"),
                      what + " param square sum");
  comparison.relative(mean, totals.at("running_mean_sum"), bounds.at("running_mean_sum_rel"),
                      what + " running mean sum");
  comparison.relative(variance, totals.at("running_var_sum"), bounds.at("running_var_sum_rel"),
                      what + " running var sum");
}

void compare_first_norm(Comparison& comparison, std::map<std::string, at::Tensor> const& state,
                        json const& expected, Bounds const& bounds) {
  auto const sum = [&](char const* entry) {
    return state.at(std::string("model.0.bn.") + entry).sum().item<double>();
  };
  comparison.relative(sum("running_mean"), expected.at("running_mean_sum"),
                      bounds.at("running_mean_sum_rel"), "model.0 running mean");
  comparison.relative(sum("running_var"), expected.at("running_var_sum"),
                      bounds.at("running_var_sum_rel"), "model.0 running var");
  EXPECT_EQ(sum("num_batches_tracked"), expected.at("num_batches_tracked").get<double>());
}

void compare_ema(Comparison& comparison, Engine const& engine, json const& expected,
                 Bounds const& bounds) {
  EXPECT_EQ(engine.ema().updates(), expected.at("updates").get<std::int64_t>());
  // The fixture states "rel 1e-12" as text.
  comparison.relative(engine.ema().decay_at(engine.ema().updates()), expected.at("decay"), 1e-12,
                      "ema decay");
  auto const averaged = engine.averaged();
  compare_totals(comparison, engine, averaged, expected.at("totals"), bounds, "ema");
  for (auto const& [name, record] : expected.at("params").items()) {
    compare_record(comparison, averaged.at(name), record, bounds, "ema " + name);
  }
}

void compare_losses(Comparison& comparison, at::Tensor const& parts, json const& expected,
                    double bound) {
  for (std::int64_t i = 0; i < 3; ++i) {
    comparison.relative(parts[i].item<double>(), expected[static_cast<std::size_t>(i)], bound,
                        "loss part " + std::to_string(i));
  }
}

/// Runs the first `step_count` steps and compares everything that the fixture says about them.
Engine compare_trajectory(json const& fixture, parallel::WeightLayout layout,
                          std::size_t step_count) {
  auto const& hyper = fixture.at("hyper");
  Engine engine(fixture, {parse_kind(fixture.at("optimizer")),
                          {hyper.at("ema_decay"), hyper.at("ema_tau")},
                          hyper.at("clip"),
                          layout});
  std::vector<optim::GroupHyper> settings;
  for (auto const& group : engine.groups()) {
    settings.push_back({hyper.at("lr").get<double>() * group.lr_factor,
                        group.decays ? hyper.at("weight_decay").get<double>() : 0.0,
                        hyper.at("momentum")});
  }
  Comparison comparison;
  for (std::size_t i = 0; i < step_count; ++i) {
    SCOPED_TRACE(i);
    auto const& expected = fixture.at("steps")[i];
    Bounds const bounds(fixture.at("tolerance"), i);
    auto const parts = engine.accumulate(0);
    compare_losses(comparison, parts, expected.at("loss_vector"), bounds.at("loss_rel"));
    comparison.relative(engine.loss_total(), expected.at("loss_total"), bounds.at("loss_rel"),
                        "loss total");
    for (auto const& [name, norm] : expected.at("grad_norm_selected").items()) {
      comparison.relative(engine.gradient_norm(name), norm, bounds.at("grad_norm_rel"),
                          "gradient of " + name);
    }
    comparison.relative(engine.update(settings), expected.at("grad_norm_before_clip"),
                        bounds.at("grad_norm_rel"), "gradient norm");
    auto const live = engine.live();
    for (auto const& [name, record] : expected.at("params").items()) {
      compare_record(comparison, live.at(name), record, bounds, name);
    }
    compare_totals(comparison, engine, live, expected.at("totals"), bounds, "live");
    compare_first_norm(comparison, live, expected.at("bn0"), bounds);
    compare_ema(comparison, engine, expected.at("ema"), bounds);
  }
  comparison.report(fixture.at("optimizer"));
  return engine;
}

class Trajectory : public ::testing::TestWithParam<char const*> {};

// Constant learning rate, every step an update.
TEST_P(Trajectory, FollowsTheReferenceTrainer) {
  auto const fixture = testing::golden_json(std::string(GetParam()) + ".json");
  auto const step_count = fixture.at("steps").size();
  auto const engine = compare_trajectory(fixture, parallel::WeightLayout::row_major, step_count);
  Bounds const last(fixture.at("tolerance"), step_count - 1);
  auto const live = engine.live();
  for (auto const& [name, tensor] :
       testing::golden_tensors(std::string(GetParam()) + "_final.safetensors").tensors) {
    testing::expect_close(live.at(name), tensor,
                          engine.is_parameter(name) ? 0 : last.at("running_mean_sum_rel"),
                          last.at("params_sample_abs"), name);
  }
}

// The fixtures were made in the other layout. ATen's batch norm on the CPU is ten times less exact
// in this one, so that chaos takes over after some steps; the first must agree all the same.
TEST_P(Trajectory, BeginsAsTheReferenceTrainerInChannelsLast) {
  auto const fixture = testing::golden_json(std::string(GetParam()) + ".json");
  compare_trajectory(fixture, parallel::WeightLayout::channels_last, 1);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Trajectory,
                         ::testing::Values("train_sgd", "train_adamw", "train_musgd"),
                         [](auto const& info) { return std::string(info.param); });

optim::ScheduleSettings schedule_settings(json const& config) {
  optim::ScheduleSettings s;
  s.epochs = config.at("epochs");
  s.iterations_per_epoch = config.at("iterations_per_epoch");
  s.batch = config.at("batch_total");
  s.nominal_batch = config.at("nbs");
  s.optimizer = parse_kind(config.at("optimizer"));
  s.lr0 = config.at("lr0");
  s.lrf = config.at("lrf");
  s.decay = config.at("cos_lr").get<bool>() ? optim::Decay::cosine : optim::Decay::linear;
  s.momentum = config.at("momentum");
  s.weight_decay = config.at("weight_decay");
  s.warmup_epochs = config.at("warmup_epochs");
  s.warmup_momentum = config.at("warmup_momentum");
  s.warmup_bias_lr = config.at("warmup_bias_lr");
  return s;
}

void compare_abs_sums(Comparison& comparison, std::map<std::string, at::Tensor> const& state,
                      json const& expected, double bound, std::string const& what) {
  for (auto const& [name, sum] : expected.items()) {
    comparison.relative(state.at(name).abs().sum().item<double>(), sum, bound, what + name);
  }
}

// The full loop: warm-up, accumulation over iterations, scaled decay, clipping, cosine schedule,
// EMA.
TEST(Recipe, FollowsTheReferenceTrainer) {
  auto const fixture = testing::golden_json("train_recipe.json");
  auto const& config = fixture.at("config");
  optim::Schedule const schedule(schedule_settings(config));
  Engine engine(
      fixture,
      {schedule.settings().optimizer, {}, config.at("clip"), parallel::WeightLayout::row_major});
  optim::StepRule rule;
  Comparison comparison;
  for (std::size_t i = 0; i < fixture.at("iterations").size(); ++i) {
    SCOPED_TRACE(i);
    auto const& expected = fixture.at("iterations")[i];
    Bounds const bounds(fixture.at("tolerance"), i);
    auto const ni = static_cast<std::int64_t>(i);
    constexpr double schedule_bound = 1e-9;  // the fixture states it as text
    comparison.relative(schedule.learning_rate(ni, optim::GroupKind::bias), expected.at("lr_bias"),
                        schedule_bound, "lr of biases");
    comparison.relative(schedule.learning_rate(ni, optim::GroupKind::weight),
                        expected.at("lr_other"), schedule_bound, "lr");
    comparison.relative(schedule.momentum(ni), expected.at("momentum"), schedule_bound, "momentum");
    EXPECT_EQ(schedule.accumulation(ni), expected.at("accumulate").get<std::int64_t>());

    compare_losses(comparison, engine.accumulate(ni), expected.at("loss_vector"),
                   bounds.at("loss_rel"));
    bool const steps = rule.advance(ni, schedule.accumulation(ni));
    ASSERT_EQ(steps, expected.at("step").get<int>() == 1);
    if (steps) {
      // The fixture has no bound for the norm; the one of the losses is the nearest.
      constexpr double norm_per_loss_bound = 10;
      comparison.relative(engine.update(schedule.hyper(ni, engine.groups())),
                          expected.at("grad_norm_before_clip"),
                          norm_per_loss_bound * bounds.at("loss_rel"), "gradient norm");
    }
    EXPECT_EQ(engine.ema().updates(), expected.at("ema_updates").get<std::int64_t>());
    auto const live = engine.live();
    compare_abs_sums(comparison, live, expected.at("param_abs_sum"), bounds.at("param_abs_sum_rel"),
                     "");
    compare_abs_sums(comparison, engine.averaged(), expected.at("ema_param_abs_sum"),
                     bounds.at("ema_param_abs_sum_rel"), "ema ");
    double variance = 0;
    for (auto const& [name, tensor] : live) {
      if (name.ends_with("running_var")) variance += tensor.sum().item<double>();
    }
    comparison.relative(variance, expected.at("running_var_sum"), bounds.at("running_var_sum_rel"),
                        "running var sum");
  }
  comparison.report("train_recipe");
}

}  // namespace
}  // namespace yolohpc
