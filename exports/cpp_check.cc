// Runs a text through a SavedModel with the C++ loader that TensorFlow Serving is built on.
//   cpp_check DIRECTORY TEXT
// Prints each output of serving_default; the exit status is 0 if it ran. See exports/README.md.

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/compiler/jit/flags.h"
#include "tensorflow/core/framework/tensor.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: cpp_check DIRECTORY TEXT\n";
    return 2;
  }
  tensorflow::DisableXlaCompilation();  // as the server does

  tensorflow::SavedModelBundle bundle;
  auto status = tensorflow::LoadSavedModel({}, {}, argv[1], {"serve"}, &bundle);
  if (!status.ok()) {
    std::cerr << "cannot load " << argv[1] << ": " << status << "\n";
    return 1;
  }
  const auto& signatures = bundle.meta_graph_def.signature_def();
  const auto found = signatures.find("serving_default");
  if (found == signatures.end() || found->second.inputs().size() != 1) {
    std::cerr << argv[1] << " has no signature serving_default of one input\n";
    return 1;
  }

  std::vector<std::string> names, tensors;
  for (const auto& [name, info] : found->second.outputs()) {
    names.push_back(name);
    tensors.push_back(info.name());
  }
  tensorflow::Tensor text(tensorflow::DT_STRING, tensorflow::TensorShape({1}));
  text.flat<tensorflow::tstring>()(0) = argv[2];
  std::vector<tensorflow::Tensor> outputs;
  status = bundle.session->Run({{found->second.inputs().begin()->second.name(), text}}, tensors,
                               {}, &outputs);
  if (!status.ok()) {
    std::cerr << "cannot run " << argv[1] << ": " << status << "\n";
    return 1;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    std::cout << names[i] << ": " << outputs[i].SummarizeValue(1) << "\n";
  }
  return 0;
}
