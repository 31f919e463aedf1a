// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Launcher/TensorFiles.h"
#include "lib/Runtime/Launcher/Fault.h"
#include "lib/Runtime/Launcher/Json.h"
#include "lib/Runtime/Launcher/Manifest.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hyperparallel::launcher {

bool fileExists(const std::string &path) {
  return access(path.c_str(), F_OK) == 0;
}

namespace {

/// A file in memory, with reads that do not go beyond it.
class MappedFile {
public:
  explicit MappedFile(const std::string &path) : path(path) {
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about = {};
    if (file < 0 || fstat(file, &about) != 0)
      endWith("cannot read " + path + ": " + std::strerror(errno));
    size = about.st_size;
    void *mapped =
        size ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0) : nullptr;
    if (mapped == MAP_FAILED)
      endWith("cannot read " + path + ": " + std::strerror(errno));
    data = static_cast<const char *>(mapped);
    close(file);
  }

  template <typename T>
  T at(int64_t offset) const {
    T value;
    std::memcpy(&value, range(offset, sizeof(T)), sizeof(T));
    return value;
  }
  const char *range(int64_t offset, int64_t bytes) const {
    if (offset < 0 || bytes < 0 || offset > size || bytes > size - offset)
      damaged("it is cut off");
    return data + offset;
  }
  [[noreturn]] void damaged(const std::string &why) const {
    endWith(path + " is damaged: " + why);
  }

  std::string path;
  const char *data = nullptr;
  int64_t size = 0;
};

struct TypeName {
  const char *mlir, *safetensors;
};
constexpr TypeName typeNames[] = {
    {"f32", "F32"}, {"f64", "F64"}, {"f16", "F16"}, {"bf16", "BF16"},
    {"i64", "I64"}, {"i32", "I32"}, {"i16", "I16"}, {"i8", "I8"},
    {"ui8", "U8"},  {"i1", "BOOL"}};

StoredTensors readSafetensors(const MappedFile &file,
                              std::map<std::string, std::string> *metadata) {
  int64_t length = file.at<int64_t>(0);
  const char *header = file.range(8, length);
  StoredTensors tensors;
  Json json = Json::parse(header, header + length, file.path);
  for (const auto &[name, entry] : json.object()) {
    if (name == "__metadata__") {
      if (metadata)
        for (const auto &[key, value] : entry.object())
          (*metadata)[key] = value.text();
      continue;
    }
    StoredTensor &tensor = tensors[name];
    tensor.shape = entry["shape"].integers();
    for (const TypeName &type : typeNames)
      if (entry["dtype"].text() == type.safetensors)
        tensor.elementBytes = bytesOfType(type.mlir);
    std::vector<int64_t> offsets = entry["data_offsets"].integers();
    int64_t elements = 1;
    for (int64_t extent : tensor.shape)
      elements *= extent;
    if (offsets.size() != 2 ||
        offsets[1] - offsets[0] != elements * tensor.elementBytes)
      file.damaged("its entry for " + name + " has another size");
    tensor.data = file.range(8 + length + offsets[0], offsets[1] - offsets[0]);
  }
  return tensors;
}

/// The value behind 'key': in the header of a .npy, which is a Python literal.
std::string npyField(const MappedFile &file, const std::string &header,
                     const std::string &key) {
  size_t found = header.find("'" + key + "':");
  if (found == std::string::npos)
    file.damaged("an array has no " + key);
  size_t begin = header.find_first_not_of(' ', found + key.size() + 3);
  size_t end = header[begin] == '(' ? header.find(')', begin) + 1
                                    : header.find_first_of(",}", begin);
  return header.substr(begin, end - begin);
}

StoredTensor readNpy(const MappedFile &file, int64_t offset,
                     const std::string &name) {
  if (std::memcmp(file.range(offset, 8), "\x93NUMPY", 6) != 0)
    file.damaged(name + " is no array");
  bool isLong = file.at<uint8_t>(offset + 6) > 1;
  int64_t length =
      isLong ? file.at<uint32_t>(offset + 8) : file.at<uint16_t>(offset + 8);
  int64_t begin = offset + (isLong ? 12 : 10);
  std::string header(file.range(begin, length), length);
  std::string type = npyField(file, header, "descr");
  if (npyField(file, header, "fortran_order") != "False" || type.size() < 4 ||
      type[1] == '>')
    endWith(file.path + ": expected " + name +
            " in row-major order and in the machine's byte order; save "
            "numpy.ascontiguousarray of it");
  StoredTensor tensor;
  tensor.elementBytes = std::atoi(type.c_str() + 3);
  int64_t bytes = tensor.elementBytes;
  std::string shape = npyField(file, header, "shape");
  for (const char *at = shape.c_str() + 1; *at && *at != ')';) {
    char *end = nullptr;
    int64_t extent = std::strtoll(at, &end, 10);
    if (end == at)
      break;
    tensor.shape.push_back(extent);
    bytes *= extent;
    at = end + std::strspn(end, ", ");
  }
  tensor.data = file.range(begin + length, bytes);
  return tensor;
}

/// The sizes and the place of an entry of a zip archive, which is in its
/// extra field where they do not fit 32 bits.
struct ZipEntry {
  int64_t packed, plain, offset;
};

ZipEntry readZipEntry(const MappedFile &file, int64_t at, int64_t nameLength,
                      int64_t extraLength) {
  ZipEntry entry = {file.at<uint32_t>(at + 20), file.at<uint32_t>(at + 24),
                    file.at<uint32_t>(at + 42)};
  int64_t extra = at + 46 + nameLength, end = extra + extraLength;
  while (extra + 4 <= end) {
    int64_t next = extra + 4 + file.at<uint16_t>(extra + 2);
    if (file.at<uint16_t>(extra) == 1) {
      extra += 4;
      for (int64_t *field : {&entry.plain, &entry.packed, &entry.offset})
        if (*field == 0xFFFFFFFF && extra + 8 <= next) {
          *field = file.at<int64_t>(extra);
          extra += 8;
        }
    }
    extra = next;
  }
  return entry;
}

StoredTensors readNpz(const MappedFile &file) {
  // The end of the central directory: the last record, with a comment of at
  // most 65535 bytes behind it.
  int64_t end = file.size - 22;
  while (end >= 0 && end > file.size - 22 - 65536 &&
         file.at<uint32_t>(end) != 0x06054b50)
    --end;
  if (end < 0 || file.at<uint32_t>(end) != 0x06054b50)
    file.damaged("it has no directory");
  StoredTensors tensors;
  int64_t count = file.at<uint16_t>(end + 10);
  int64_t at = file.at<uint32_t>(end + 16);
  for (int64_t i = 0; i < count; ++i) {
    int64_t nameLength = file.at<uint16_t>(at + 28);
    int64_t extraLength = file.at<uint16_t>(at + 30);
    std::string name(file.range(at + 46, nameLength), nameLength);
    ZipEntry entry = readZipEntry(file, at, nameLength, extraLength);
    if (file.at<uint16_t>(at + 10) != 0)
      endWith(file.path + ": expected arrays that are not compressed; write "
                          "them with numpy.savez");
    if (name.size() > 4 && name.compare(name.size() - 4, 4, ".npy") == 0)
      name.resize(name.size() - 4);
    // The local header has name and extra field of its own.
    int64_t data = entry.offset + 30 + file.at<uint16_t>(entry.offset + 26) +
                   file.at<uint16_t>(entry.offset + 28);
    tensors[name] = readNpy(file, data, name);
    at += 46 + nameLength + extraLength + file.at<uint16_t>(at + 32);
  }
  return tensors;
}

} // namespace

StoredTensors readTensors(const std::string &path,
                          std::map<std::string, std::string> *metadata) {
  MappedFile file(path);
  if (file.size >= 4 && !std::memcmp(file.data, "PK", 2))
    return readNpz(file);
  return readSafetensors(file, metadata);
}

void writeSafetensors(const std::string &path,
                      const std::vector<NamedTensor> &tensors) {
  std::string header = "{";
  int64_t offset = 0;
  std::vector<int64_t> sizes;
  for (const NamedTensor &tensor : tensors) {
    int64_t bytes = bytesOfType(tensor.dtype);
    std::string shape;
    for (int64_t extent : tensor.shape) {
      bytes *= extent;
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    }
    const char *type = "";
    for (const TypeName &name : typeNames)
      if (tensor.dtype == name.mlir)
        type = name.safetensors;
    header += (header.size() > 1 ? "," : "") + quoteJson(tensor.name) +
              ":{\"dtype\":\"" + type + "\",\"shape\":[" + shape +
              "],\"data_offsets\":[" + std::to_string(offset) + "," +
              std::to_string(offset + bytes) + "]}";
    offset += bytes;
    sizes.push_back(bytes);
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' '); // aligned data
  int64_t length = header.size();
  FILE *file = std::fopen(path.c_str(), "wb");
  bool isWritten = file && std::fwrite(&length, 8, 1, file) == 1 &&
                   std::fwrite(header.data(), length, 1, file) == 1;
  for (size_t i = 0; isWritten && i < tensors.size(); ++i)
    isWritten =
        sizes[i] == 0 || std::fwrite(tensors[i].data, sizes[i], 1, file) == 1;
  isWritten = isWritten && std::fflush(file) == 0 && fsync(fileno(file)) == 0;
  if (!isWritten)
    endWith("cannot write " + path + ": " + std::strerror(errno));
  std::fclose(file);
}

} // namespace hyperparallel::launcher
