#include "hdf5_object.hpp"

#include <cstdint>

namespace yolohpc::data {
namespace {

// The one lock that has to span the process: what it guards is the library's own global state.
std::mutex& library_lock() {
  static std::mutex lock;
  return lock;
}

herr_t append_text(unsigned, H5E_error2_t const* error, void* text) {
  auto& line = *static_cast<std::string*>(text);
  if (error->desc == nullptr || line.size() > 400) return 0;
  if (!line.empty()) line += "; ";
  line += error->desc;
  return 0;
}

}  // namespace

Hdf5Session::Hdf5Session() : guard_(library_lock()) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

std::string hdf5_error_text() {
  std::string line;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, append_text, &line);
  H5Eclear2(H5E_DEFAULT);
  return line.empty() ? "HDF5 gives no reason" : line;
}

template <>
hid_t hdf5_file_type<double>() {
  return H5T_IEEE_F64LE;
}
template <>
hid_t hdf5_file_type<std::uint8_t>() {
  return H5T_STD_U8LE;
}
template <>
hid_t hdf5_file_type<std::int32_t>() {
  return H5T_STD_I32LE;
}
template <>
hid_t hdf5_file_type<std::uint32_t>() {
  return H5T_STD_U32LE;
}
template <>
hid_t hdf5_file_type<std::int64_t>() {
  return H5T_STD_I64LE;
}
template <>
hid_t hdf5_file_type<std::uint64_t>() {
  return H5T_STD_U64LE;
}
template <>
hid_t hdf5_memory_type<double>() {
  return H5T_NATIVE_DOUBLE;
}
template <>
hid_t hdf5_memory_type<std::uint8_t>() {
  return H5T_NATIVE_UINT8;
}
template <>
hid_t hdf5_memory_type<std::int32_t>() {
  return H5T_NATIVE_INT32;
}
template <>
hid_t hdf5_memory_type<std::uint32_t>() {
  return H5T_NATIVE_UINT32;
}
template <>
hid_t hdf5_memory_type<std::int64_t>() {
  return H5T_NATIVE_INT64;
}
template <>
hid_t hdf5_memory_type<std::uint64_t>() {
  return H5T_NATIVE_UINT64;
}

}  // namespace yolohpc::data
