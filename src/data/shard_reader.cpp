#include "shard_reader.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "hdf5_object.hpp"

namespace yolohpc::data {
namespace {

namespace fs = std::filesystem;

constexpr char cure[] = ". Copy the file again or pack the split again.";

/// An open shard.
class Reader {
 public:
  Reader(fs::path const& path, std::string const& words) : words_(words), file_(open(path)) {
    file_bytes_ = fs::file_size(path);
  }

  std::string text(char const* name) const {
    Hdf5Object const attribute = open_attribute(name);
    std::vector<char> const bytes = texts(attribute, name, 1);
    return {bytes.data(), strnlen(bytes.data(), bytes.size())};
  }
  template <typename T>
  T number(char const* name) const {
    Hdf5Object const attribute = open_attribute(name);
    require_values(attribute, name, 1);
    T value{};
    check(H5Aread(attribute.get(), hdf5_memory_type<T>(), &value), "H5Aread");
    return value;
  }
  std::vector<Category> categories() const;
  template <typename T>
  void table(char const* name, std::vector<T>& column, int row_values) const;
  /// Place and length of the image bytes.
  std::pair<std::uint64_t, std::uint64_t> payload() const;

 private:
  template <typename Result>
  Result check(Result result, char const* call) const {
    return hdf5_check(result, call, words_, base::ExitCode::bad_data);
  }
  template <typename... Parts>
  [[noreturn]] void reject(Parts const&... parts) const {
    base::fail(base::ExitCode::bad_data, words_, parts..., cure);
  }
  Hdf5Object open(fs::path const& path) const;
  Hdf5Object open_attribute(char const* name) const;
  Hdf5Object open_dataset(char const* name) const;
  std::uint64_t value_count(Hdf5Object const& attribute) const;
  void require_values(Hdf5Object const& attribute, char const* name, std::uint64_t count) const;
  std::vector<char> texts(Hdf5Object const& attribute, char const* name, std::uint64_t count) const;
  std::uint64_t dataset_values(Hdf5Object const& dataset, char const* name,
                               std::size_t value_bytes) const;

  std::string words_;
  Hdf5Object file_;
  std::uint64_t file_bytes_ = 0;
};

Hdf5Object Reader::open(fs::path const& path) const {
  Hdf5Object const access(check(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate"), H5Pclose);
  // Shards never change, so a lock protects nothing, and many parallel file systems refuse it.
  check(H5Pset_file_locking(access.get(), false, true), "H5Pset_file_locking");
  return {check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), "H5Fopen"), H5Fclose};
}

Hdf5Object Reader::open_attribute(char const* name) const {
  if (check(H5Aexists(file_.get(), name), "H5Aexists") == 0) {
    reject(" has no attribute '", name, "', so it is no shard of this program");
  }
  return {check(H5Aopen(file_.get(), name, H5P_DEFAULT), "H5Aopen"), H5Aclose};
}

Hdf5Object Reader::open_dataset(char const* name) const {
  if (check(H5Lexists(file_.get(), name, H5P_DEFAULT), "H5Lexists") == 0) {
    reject(" has no data set '", name, "'");
  }
  return {check(H5Dopen2(file_.get(), name, H5P_DEFAULT), "H5Dopen"), H5Dclose};
}

std::uint64_t Reader::value_count(Hdf5Object const& attribute) const {
  Hdf5Object const space(check(H5Aget_space(attribute.get()), "H5Aget_space"), H5Sclose);
  return static_cast<std::uint64_t>(
      check(H5Sget_simple_extent_npoints(space.get()), "H5Sget_simple_extent_npoints"));
}

void Reader::require_values(Hdf5Object const& attribute, char const* name,
                            std::uint64_t count) const {
  std::uint64_t const found = value_count(attribute);
  if (found != count) reject(": attribute '", name, "' has ", found, " values (needs ", count, ")");
}

std::vector<char> Reader::texts(Hdf5Object const& attribute, char const* name,
                                std::uint64_t count) const {
  require_values(attribute, name, count);
  Hdf5Object const type(check(H5Aget_type(attribute.get()), "H5Aget_type"), H5Tclose);
  bool const is_fixed =
      H5Tget_class(type.get()) == H5T_STRING && H5Tis_variable_str(type.get()) == 0;
  if (!is_fixed) reject(": attribute '", name, "' is no text of fixed length");
  std::size_t const size = H5Tget_size(type.get());
  if (size * count > file_bytes_)
    reject(": attribute '", name, "' is longer than the file (length)");
  std::vector<char> bytes(size * count);
  check(H5Aread(attribute.get(), type.get(), bytes.data()), "H5Aread");
  return bytes;
}

std::vector<Category> Reader::categories() const {
  Hdf5Object const id_attribute = open_attribute("category_ids");
  std::uint64_t const count = value_count(id_attribute);
  if (count == 0 || count > file_bytes_) reject(" has ", count, " categories");
  std::vector<std::int64_t> ids(count);
  check(H5Aread(id_attribute.get(), hdf5_memory_type<std::int64_t>(), ids.data()), "H5Aread");
  std::vector<char> const names = texts(open_attribute("category_names"), "category_names", count);
  std::size_t const size = names.size() / count;
  std::vector<Category> categories(count);
  for (std::size_t i = 0; i < count; ++i) {
    char const* const name = names.data() + i * size;
    categories[i] = {ids[i], std::string(name, strnlen(name, size))};
  }
  return categories;
}

std::uint64_t Reader::dataset_values(Hdf5Object const& dataset, char const* name,
                                     std::size_t value_bytes) const {
  Hdf5Object const space(check(H5Dget_space(dataset.get()), "H5Dget_space"), H5Sclose);
  auto const count = static_cast<std::uint64_t>(
      check(H5Sget_simple_extent_npoints(space.get()), "H5Sget_simple_extent_npoints"));
  if (count > file_bytes_ / value_bytes) {
    reject(": '", name, "' has ", count, " values, more than a file of ", file_bytes_,
           " bytes holds (length)");
  }
  return count;
}

template <typename T>
void Reader::table(char const* name, std::vector<T>& column, int row_values) const {
  Hdf5Object const dataset = open_dataset(name);
  std::uint64_t const count = dataset_values(dataset, name, sizeof(T));
  if (count % static_cast<std::uint64_t>(row_values) != 0) {
    reject(": '", name, "' has ", count, " values, ", row_values, " a row");
  }
  column.resize(count);
  if (count == 0) return;
  check(H5Dread(dataset.get(), hdf5_memory_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, column.data()),
        "H5Dread");
}

std::pair<std::uint64_t, std::uint64_t> Reader::payload() const {
  Hdf5Object const dataset = open_dataset(image_bytes_name);
  std::uint64_t const size = dataset_values(dataset, image_bytes_name, 1);
  Hdf5Object const creation(check(H5Dget_create_plist(dataset.get()), "H5Dget_create_plist"),
                            H5Pclose);
  haddr_t const offset = H5Dget_offset(dataset.get());
  bool const is_plain = H5Pget_layout(creation.get()) == H5D_CONTIGUOUS && offset != HADDR_UNDEF;
  if (!is_plain) {
    reject(
        ": '", image_bytes_name,
        "' is not stored in one piece (chunked, compressed or external; a tool has rewritten the "
        "file)");
  }
  if (offset + size > file_bytes_) {
    reject(" is cut short: the image bytes end at ", offset + size, ", the file at ", file_bytes_,
           " (length)");
  }
  return {offset, size};
}

ShardHeader read_header(Reader const& reader, std::string const& words) {
  std::string const format = reader.text("format");
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, format == shard_format_name, words, " has format '",
                   format, "' (a shard says '", shard_format_name,
                   "'). It is another kind of file.");
  auto const version = reader.number<std::uint32_t>("format_version");
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, version == shard_format_version, words,
                   " has format version ", version, ", this program reads version ",
                   shard_format_version, ". Pack the data again with this version of the program.");
  ShardHeader header;
  header.split = reader.text("split");
  header.shard = reader.number<std::int32_t>("shard");
  header.shard_count = reader.number<std::int32_t>("shard_count");
  header.first_image = reader.number<std::int64_t>("first_image");
  header.split_images = reader.number<std::int64_t>("split_images");
  header.digest = reader.text("digest");
  header.categories = reader.categories();
  return header;
}

}  // namespace

ShardContent read_shard(fs::path const& path, std::string const& words) {
  Hdf5Session const session;
  Reader const reader(path, words);
  ShardContent content;
  content.header = read_header(reader, words);
  for_each_table(content.tables, [&reader](char const* name, auto& column, int row_values) {
    reader.table(name, column, row_values);
  });
  auto const [offset, size] = reader.payload();
  content.payload_offset = offset;
  auto const stored = reader.number<std::uint32_t>("metadata_crc32c");
  std::uint32_t const found = metadata_crc32c(content.header, content.tables);
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, stored == found, words,
                   ": its tables or attributes are damaged (CRC-32C is ", found, ", stored is ",
                   stored, ")", cure);
  check_tables(content.tables, size, content.header.categories.size(), words);
  return content;
}

}  // namespace yolohpc::data
