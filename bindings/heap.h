// The memory that JavaScript asks for: a few large blocks at a time, and many small ones that soon go again. The C
// library has an allocator for anything, in a tenth of a whole binary; this one is for that.
//
// Blocks stand one behind the other in stretches that sbrk() gave, each behind its header, and know both neighbours.
// Free ones are never neighbours, and are chained: the smallest that fits is taken, and what is left of it stays free.
// What is held depends on what was asked for alone, not on what came between.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace attention {

class Heap {
 public:
  /// So many bytes at a multiple of 16, or null where there is no room. At most 4 GiB - 64 KiB may be asked for.
  void* allocate(size_t bytes) {
    const size_t size = (bytes + 2 * kHeader - 1) / kHeader * kHeader;
    Block* block = find(size);
    while (!block) {
      if (!extend(size)) return nullptr;
      block = find(size);
    }
    unchain(block);
    if (block->size > size) {
      Block* const rest = at(block, size);
      rest->size = block->size - size;
      rest->before = block;
      after(rest)->before = rest;
      block->size = size;
      chain(rest);
    }
    block->next = nullptr;
    used_ += block->size;
    return block + 1;
  }

  void release(void* pointer) {
    Block* block = static_cast<Block*>(pointer) - 1;
    used_ -= block->size;
    if (Block* const next = after(block); next->next) {
      unchain(next);
      block->size += next->size;
    }
    if (Block* const before = block->before; before && before->next) {
      unchain(before);
      before->size += block->size;
      block = before;
    }
    after(block)->before = block;
    chain(block);
  }

  /// Bytes that are held, with their headers.
  size_t used() const { return used_; }

 private:
  struct Block {
    size_t size;    // with this header; 0: the end of a stretch
    Block* before;  // whose end is here; null: the first of a stretch
    Block* next;    // in the chain of free blocks; null: in use
    Block* previous;
  };
  static constexpr size_t kHeader = sizeof(Block);
  static_assert(kHeader % 16 == 0);

  static Block* at(Block* block, size_t distance) {
    return reinterpret_cast<Block*>(reinterpret_cast<char*>(block) + distance);
  }
  static Block* after(Block* block) { return at(block, block->size); }

  void chain(Block* block) {
    block->next = free_.next;
    block->previous = &free_;
    free_.next->previous = block;
    free_.next = block;
  }
  static void unchain(Block* block) {
    block->next->previous = block->previous;
    block->previous->next = block->next;
  }

  Block* find(size_t size) {
    Block* best = nullptr;
    for (Block* block = free_.next; block != &free_; block = block->next) {
      if (block->size >= size && (!best || block->size < best->size)) best = block;
    }
    return best;
  }

  /// Room for one more block of `size`: behind the last stretch where that can go on, else as a new one.
  bool extend(size_t size) {
    const bool goes_on = end_ && sbrk(0) == end_ + 1;
    const bool is_free = goes_on && end_->before && end_->before->next;
    // A new stretch needs an end, and may have to begin a little later.
    const size_t more = goes_on ? size - (is_free ? end_->before->size : 0) : size + 2 * kHeader;
    char* const begin = static_cast<char*>(sbrk(static_cast<intptr_t>(more)));
    if (begin == reinterpret_cast<char*>(-1)) return false;
    const bool is_new = !goes_on || begin != reinterpret_cast<char*>(end_ + 1);
    if (is_new && more < 4 * kHeader) return true;  // something else came in between: once more, as a new one
    char* const limit = begin + more;
    Block* block = end_;
    if (is_new) {
      block = reinterpret_cast<Block*>((reinterpret_cast<uintptr_t>(begin) + kHeader - 1) / kHeader * kHeader);
      block->before = nullptr;
    }
    end_ = reinterpret_cast<Block*>(reinterpret_cast<uintptr_t>(limit) / kHeader * kHeader) - 1;
    block->size = static_cast<size_t>(reinterpret_cast<char*>(end_) - reinterpret_cast<char*>(block));
    end_->size = 0;
    end_->before = block;
    end_->next = nullptr;
    block->next = nullptr;
    used_ += block->size;  // as if it had been held
    release(block + 1);
    return true;
  }

  Block free_ = {0, nullptr, &free_, &free_};
  Block* end_ = nullptr;
  size_t used_ = 0;
};

}  // namespace attention
