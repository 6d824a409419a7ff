#include "shard_writer.hpp"

#include <algorithm>
#include <vector>

#include "file_descriptor.hpp"
#include "hdf5_object.hpp"

namespace yolohpc::data {
namespace {

namespace fs = std::filesystem;

/// Attributes and links up to this count stay in the root group's header.
constexpr unsigned compact_entries = 64;

/// The file while its structure is made.
class Writer {
 public:
  explicit Writer(fs::path const& path)
      : origin_("cannot write " + path.string()), file_(create(path)) {}

  void attribute(char const* name, hid_t file_type, hid_t memory_type, void const* values,
                 hid_t space) {
    Hdf5Object const attribute(
        check(H5Acreate2(file_.get(), name, file_type, space, H5P_DEFAULT, H5P_DEFAULT),
              "H5Acreate"),
        H5Aclose);
    check(H5Awrite(attribute.get(), memory_type, values), "H5Awrite");
  }
  template <typename T>
  void number(char const* name, T value) {
    Hdf5Object const space(check(H5Screate(H5S_SCALAR), "H5Screate"), H5Sclose);
    attribute(name, hdf5_file_type<T>(), hdf5_memory_type<T>(), &value, space.get());
  }
  void text(char const* name, std::string const& value) {
    Hdf5Object const space(check(H5Screate(H5S_SCALAR), "H5Screate"), H5Sclose);
    Hdf5Object const type = text_type(value.size());
    std::string const padded = value.empty() ? std::string(1, '\0') : value;
    attribute(name, type.get(), type.get(), padded.data(), space.get());
  }
  void categories(std::vector<Category> const& categories);
  template <typename T>
  void table(char const* name, std::vector<T> const& column, int row_values);
  /// Reserves the image bytes; returns their place in the file.
  std::uint64_t reserve_images(std::uint64_t size_bytes);
  void close() { check(file_.close(), "H5Fclose"); }

 private:
  template <typename Result>
  Result check(Result result, char const* call) const {
    return hdf5_check(result, call, origin_);
  }
  Hdf5Object create(fs::path const& path) const;
  Hdf5Object text_type(std::size_t size_bytes) const;
  Hdf5Object plain_dataset(char const* name, hid_t type, hid_t space, H5D_alloc_time_t when) const;

  std::string origin_;
  Hdf5Object file_;
};

Hdf5Object Writer::create(fs::path const& path) const {
  Hdf5Object const creation(check(H5Pcreate(H5P_FILE_CREATE), "H5Pcreate"), H5Pclose);
  check(H5Pset_obj_track_times(creation.get(), false), "H5Pset_obj_track_times");
  check(H5Pset_link_phase_change(creation.get(), compact_entries, 0), "H5Pset_link_phase_change");
  check(H5Pset_attr_phase_change(creation.get(), compact_entries, 0), "H5Pset_attr_phase_change");
  Hdf5Object const access(check(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate"), H5Pclose);
  // Headers of this version carry checksums; a wider range would let the library choose.
  check(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_V18), "H5Pset_libver_bounds");
  check(H5Pset_file_locking(access.get(), false, true), "H5Pset_file_locking");
  return {check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), "H5Fcreate"),
          H5Fclose};
}

Hdf5Object Writer::text_type(std::size_t size_bytes) const {
  Hdf5Object type(check(H5Tcopy(H5T_C_S1), "H5Tcopy"), H5Tclose);
  check(H5Tset_size(type.get(), std::max<std::size_t>(size_bytes, 1)), "H5Tset_size");
  check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "H5Tset_strpad");
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "H5Tset_cset");
  return type;
}

void Writer::categories(std::vector<Category> const& categories) {
  std::size_t longest = 1;
  std::vector<std::int64_t> ids;
  for (Category const& category : categories) {
    longest = std::max(longest, category.name.size());
    ids.push_back(category.id);
  }
  std::vector<char> names(longest * categories.size(), '\0');
  for (std::size_t i = 0; i < categories.size(); ++i) {
    std::copy(categories[i].name.begin(), categories[i].name.end(), names.data() + i * longest);
  }
  hsize_t const count = categories.size();
  Hdf5Object const space(check(H5Screate_simple(1, &count, nullptr), "H5Screate_simple"), H5Sclose);
  Hdf5Object const type = text_type(longest);
  attribute("category_ids", hdf5_file_type<std::int64_t>(), hdf5_memory_type<std::int64_t>(),
            ids.data(), space.get());
  attribute("category_names", type.get(), type.get(), names.data(), space.get());
}

Hdf5Object Writer::plain_dataset(char const* name, hid_t type, hid_t space,
                                 H5D_alloc_time_t when) const {
  Hdf5Object const creation(check(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate"), H5Pclose);
  check(H5Pset_layout(creation.get(), H5D_CONTIGUOUS), "H5Pset_layout");
  check(H5Pset_alloc_time(creation.get(), when), "H5Pset_alloc_time");
  check(H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER), "H5Pset_fill_time");
  check(H5Pset_obj_track_times(creation.get(), false), "H5Pset_obj_track_times");
  return {
      check(H5Dcreate2(file_.get(), name, type, space, H5P_DEFAULT, creation.get(), H5P_DEFAULT),
            "H5Dcreate"),
      H5Dclose};
}

template <typename T>
void Writer::table(char const* name, std::vector<T> const& column, int row_values) {
  auto const values = static_cast<hsize_t>(row_values);
  hsize_t const shape[2] = {column.size() / values, values};
  Hdf5Object const space(
      check(H5Screate_simple(row_values == 1 ? 1 : 2, shape, nullptr), "H5Screate_simple"),
      H5Sclose);
  Hdf5Object const dataset =
      plain_dataset(name, hdf5_file_type<T>(), space.get(), H5D_ALLOC_TIME_EARLY);
  if (column.empty()) return;
  check(
      H5Dwrite(dataset.get(), hdf5_memory_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, column.data()),
      "H5Dwrite");
}

std::uint64_t Writer::reserve_images(std::uint64_t size_bytes) {
  hsize_t const shape = size_bytes;
  Hdf5Object const space(check(H5Screate_simple(1, &shape, nullptr), "H5Screate_simple"), H5Sclose);
  Hdf5Object const dataset = plain_dataset(image_bytes_name, hdf5_file_type<std::uint8_t>(),
                                           space.get(), H5D_ALLOC_TIME_EARLY);
  haddr_t const offset = H5Dget_offset(dataset.get());
  YOLOHPC_CHECK(offset != HADDR_UNDEF, origin_, ": H5Dget_offset: ", hdf5_error_text());
  return offset;
}

/// Everything but the image bytes; returns where those go.
std::uint64_t write_structure(fs::path const& path, ShardHeader const& header,
                              ShardTables const& tables) {
  Hdf5Session const session;
  Writer writer(path);
  writer.text("format", shard_format_name);
  writer.number("format_version", shard_format_version);
  writer.text("split", header.split);
  writer.number("shard", header.shard);
  writer.number("shard_count", header.shard_count);
  writer.number("first_image", header.first_image);
  writer.number("split_images", header.split_images);
  writer.number("image_count", static_cast<std::int64_t>(tables.image_count()));
  writer.number("label_count", static_cast<std::int64_t>(tables.label_count()));
  writer.text("digest", header.digest);
  writer.categories(header.categories);
  writer.number("metadata_crc32c", metadata_crc32c(header, tables));
  for_each_table(tables, [&writer](char const* name, auto const& column, int row_values) {
    writer.table(name, column, row_values);
  });
  std::uint64_t const offset = writer.reserve_images(tables.image_offset.back());
  writer.close();
  return offset;
}

}  // namespace

void write_shard(fs::path const& path, ShardHeader const& header, ShardTables const& tables,
                 ShardImageSource const& image_of) {
  std::uint64_t const offset = write_structure(path, header, tables);
  FileDescriptor const file = FileDescriptor::open_for_update(path);
  for (std::size_t i = 0; i < tables.image_count(); ++i) {
    auto const bytes = image_of(i);
    YOLOHPC_CHECK(bytes.size() == tables.image_offset[i + 1] - tables.image_offset[i], "image ",
                  tables.image_id[i], " has ", bytes.size(), " bytes, its check saw ",
                  tables.image_offset[i + 1] - tables.image_offset[i],
                  " (the file changed meanwhile). Pack again.");
    file.write_at(offset + tables.image_offset[i], bytes);
  }
  file.sync();
}

}  // namespace yolohpc::data
