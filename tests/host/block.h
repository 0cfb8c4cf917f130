// Memory for the arrays of a call: they end where their heap block ends, so that the address sanitizer sees a read or
// write even one byte too far.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace host {

/// What results are filled with before a call: in every floating-point type a NaN that no arithmetic gives.
constexpr unsigned char kUntouched = 0xff;

class Block {
 public:
  Block() = default;
  /// `bytes` bytes, filled with `fill`. `shift` > 0 takes them off the 16-byte grid, so many bytes from its beginning.
  explicit Block(size_t bytes, unsigned char fill = 0, size_t shift = 0) : bytes_(bytes) {
    // An empty array has an address too, and not a single byte to be read there.
    const size_t before = bytes + shift == 0 ? 16 : shift;
    base_ = std::malloc(before + bytes);
    if (!base_) std::abort();
    data_ = static_cast<char*>(base_) + before;
    std::memset(data_, fill, bytes);
  }
  Block(Block&& other) noexcept { swap(other); }
  Block& operator=(Block&& other) noexcept {
    swap(other);
    return *this;
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { std::free(base_); }

  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  /// How many elements of a type it holds.
  template <typename T>
  size_t count() const {
    return bytes_ / sizeof(T);
  }

 private:
  void swap(Block& other) {
    std::swap(base_, other.base_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  void* base_ = nullptr;
  char* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace host
