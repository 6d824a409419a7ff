#include "activation_checkpoint.hpp"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

namespace yolohpc::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Autocast is a property of the thread that called forward; backward runs where it likes.
class AutocastSetting {
 public:
  explicit AutocastSetting(at::DeviceType device)
      : device_(device),
        enabled_(at::autocast::is_autocast_enabled(device)),
        type_(at::autocast::get_autocast_dtype(device)) {}
  void apply() const {
    at::autocast::set_autocast_enabled(device_, enabled_);
    at::autocast::set_autocast_dtype(device_, type_);
  }

 private:
  at::DeviceType device_;
  bool enabled_;
  at::ScalarType type_;
};

/// Applies a setting for its life.
class AutocastGuard {
 public:
  AutocastGuard(at::DeviceType device, AutocastSetting const& setting) : before_(device) {
    setting.apply();
  }
  AutocastGuard(AutocastGuard const&) = delete;
  AutocastGuard& operator=(AutocastGuard const&) = delete;
  ~AutocastGuard() { before_.apply(); }

 private:
  AutocastSetting before_;
};

struct Recipe : torch::CustomClassHolder {
  Recipe(Part p, std::size_t inputs, at::DeviceType where)
      : part(std::move(p)), input_count(inputs), device(where), autocast(where) {}
  Part part;
  std::size_t input_count;
  at::DeviceType device;
  AutocastSetting autocast;
};

class Checkpoint : public torch::autograd::Function<Checkpoint> {
 public:
  /// \param tensors  inputs, then parameters. A list by this type: of a vector apply would not see
  /// the tensors.
  static variable_list forward(AutogradContext* context, c10::intrusive_ptr<Recipe> const& recipe,
                               at::TensorList tensors) {
    context->saved_data["recipe"] = c10::IValue::make_capsule(recipe);
    context->save_for_backward(tensors.vec());
    return recipe->part(tensors.slice(0, recipe->input_count).vec(), Round::first);
  }

  static variable_list backward(AutogradContext* context, variable_list output_gradients) {
    auto const recipe =
        c10::static_intrusive_pointer_cast<Recipe>(context->saved_data["recipe"].toCapsule());
    auto tensors = context->get_saved_variables();
    variable_list inputs;
    for (std::size_t i = 0; i < recipe->input_count; ++i) {
      bool const wanted = tensors[i].requires_grad();
      tensors[i] = tensors[i].detach().set_requires_grad(wanted);
      inputs.push_back(tensors[i]);
    }
    at::AutoGradMode const record(true);
    variable_list outputs;
    {
      AutocastGuard const autocast(recipe->device, recipe->autocast);
      outputs = recipe->part(inputs, Round::second);
    }
    return gradients(outputs, output_gradients, tensors);
  }

 private:
  static variable_list gradients(variable_list const& outputs, variable_list const& seeds,
                                 variable_list const& tensors) {
    variable_list wanted;
    for (auto const& tensor : tensors) {
      if (tensor.requires_grad()) wanted.push_back(tensor);
    }
    auto found = torch::autograd::grad(outputs, wanted, seeds);
    variable_list all(1);  // the recipe has no gradient
    std::size_t next = 0;
    for (auto const& tensor : tensors) {
      all.push_back(tensor.requires_grad() ? found[next++] : at::Tensor());
    }
    return all;
  }
};

}  // namespace

std::vector<at::Tensor> with_checkpoint(Part part, std::vector<at::Tensor> const& inputs,
                                        std::vector<at::Tensor> const& parameters) {
  auto const recipe =
      c10::make_intrusive<Recipe>(std::move(part), inputs.size(), inputs.front().device().type());
  variable_list tensors = inputs;
  tensors.insert(tensors.end(), parameters.begin(), parameters.end());
  return Checkpoint::apply(recipe, at::TensorList(tensors));
}

}  // namespace yolohpc::model
