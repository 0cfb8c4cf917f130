// The table of cases that every build of the package answers (tests/support/cases.js), on the kernels of this machine:
// the definition must agree with the float64 oracle, and the kernels that ship may err twice as much.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "accuracy.h"
#include "attention.h"
#include "fields.h"
#include "half.h"
#include "results.h"

namespace {

using attention::Attention;
using host::Block;
using host::Results;
using host::Which;

struct Case {
  std::string name;
  std::map<std::string, double> fields;
  std::map<std::string, Block> arrays;
  std::vector<double> out, lse, weights;  // what the oracle says
};

/// Reads what export-cases.js writes.
class Reader {
 public:
  explicit Reader(const char* path) : file_(path, std::ios::binary) {}

  uint32_t count() {
    uint32_t value = 0;
    read(&value, sizeof value);
    return value;
  }

  Case next() {
    Case result;
    result.name = text();
    for (uint32_t left = count(); left > 0; --left) {
      const std::string name = text();
      read(&result.fields[name], sizeof(double));
    }
    for (uint32_t left = count(); left > 0; --left) {
      const std::string name = text();
      Block& array = result.arrays[name] = Block(count());
      read(array.data(), array.bytes());
    }
    for (std::vector<double>* values : {&result.out, &result.lse, &result.weights}) {
      values->resize(count());
      read(values->data(), values->size() * sizeof(double));
    }
    return result;
  }

 private:
  void read(void* to, size_t bytes) {
    if (!file_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes))) {
      std::puts("the file of cases ends too early");
      std::exit(1);
    }
  }
  std::string text() {
    std::string result(count(), ' ');
    read(result.data(), result.size());
    return result;
  }

  std::ifstream file_;
};

/// The struct of a case. Every field must be given, and nothing else.
bool fill(const Case& given, Attention& call) {
  size_t used = 0;
  for (const attention::Field* field = attention::kAttention; field->name; ++field) {
    char* to = reinterpret_cast<char*>(&call) + field->offset;
    const auto number = given.fields.find(field->name);
    const auto array = given.arrays.find(field->name);
    if (array != given.arrays.end()) {
      void* const pointer = array->second.data();
      std::memcpy(to, &pointer, sizeof pointer);
    } else if (number != given.fields.end()) {
      const auto real = static_cast<float>(number->second);
      const auto whole = field->is_float ? 0 : static_cast<int32_t>(number->second);
      std::memcpy(to, field->is_float ? static_cast<const void*>(&real) : &whole, 4);
    } else if (field->name != std::string("scratch")) {
      std::printf("%s: field %s is missing\n", given.name.c_str(), field->name);
      return false;
    }
    used += array != given.arrays.end() || number != given.fields.end();
  }
  if (used == given.fields.size() + given.arrays.size()) return true;
  std::printf("%s: a field that Attention doesn't have\n", given.name.c_str());
  return false;
}

/// How far the oracle and a correct definition may lie apart, as in tests/attention.test.js: 1e-5, and half a unit in
/// the last place of the type.
double granted(bool is_lse, attention::Type type, double expected) {
  const double half_unit = type == attention::Type::kFloat16    ? 0x1p-11
                           : type == attention::Type::kBfloat16 ? 0x1p-8
                           : is_lse                             ? 1e-6
                                                                : 0;
  return 1e-5 + half_unit * (std::isfinite(expected) ? std::fabs(expected) : 0);
}

class Judge {
 public:
  explicit Judge(const Case& given) : case_(given) {}

  void compare(const char* what, const std::vector<double>& expected, attention::Type type, const Block& plain,
               const Block& fast) {
    const std::string name = case_.name + ", " + what;
    if (plain.bytes() != expected.size() * attention::size_of(type)) {
      std::printf("%s: %zu bytes for %zu values of the oracle\n", name.c_str(), plain.bytes(), expected.size());
      good_ = false;
      return;
    }
    host::Accuracy accuracy;
    for (size_t i = 0; i < expected.size(); ++i) {
      accuracy.add(attention::load_value(fast.data(), type, static_cast<ptrdiff_t>(i)),
                   attention::load_value(plain.data(), type, static_cast<ptrdiff_t>(i)), expected[i],
                   granted(what == std::string("lse"), type, expected[i]));
    }
    good_ &= accuracy.good(name.c_str());
    units_ = std::max(units_, accuracy.units());
  }
  bool good() const { return good_; }
  double units() const { return units_; }

 private:
  const Case& case_;
  bool good_ = true;
  double units_ = 0;
};

}  // namespace

int main(int, char** arguments) {
  Reader reader(arguments[1]);
  const uint32_t cases = reader.count();
  uint32_t good = 0;
  double units = 0;
  for (uint32_t i = 0; i < cases; ++i) {
    const Case given = reader.next();
    Attention call{};
    if (!fill(given, call)) continue;
    const host::Sizes sizes{given.out.size(), given.lse.size(), given.weights.size()};
    const Results plain = host::run(call, sizes, Which::kPlain), fast = host::run(call, sizes, Which::kFast);
    Judge judge(given);
    judge.compare("output", given.out, call.out_type, plain.out, fast.out);
    judge.compare("lse", given.lse, attention::Type::kFloat32, plain.lse, fast.lse);
    judge.compare("weights", given.weights, attention::Type::kFloat32, plain.weights, fast.weights);
    good += judge.good();
    units = std::max(units, judge.units());
  }
  std::printf("%u of %u cases agree; at most %.1f units beyond twice the definition's error\n", good, cases, units);
  return cases > 0 && good == cases ? 0 : 1;
}
