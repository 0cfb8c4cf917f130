// The table of cases that every build of the package answers (tests/support/cases.js), on the kernels of this machine:
// the definition must agree with the float64 oracle, and the kernels that ship may err twice as much.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

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

/// |a - b|; 0 where both are the same infinity, infinite where only one is, or where a is NaN.
double distance(double a, double b) {
  if (a == b) return 0;
  const double difference = std::fabs(a - b);
  return std::isnan(difference) ? INFINITY : difference;
}

struct Error {
  double most = 0;     // absolute, over all values
  double excess = 0;   // over what the definition is granted
  double largest = 0;  // finite value of the oracle
};

/// `relative`: half a unit in the last place of the type; `absolute`: as tests/attention.test.js grants.
Error error_of(const std::vector<double>& expected, const void* data, attention::Type type, double relative) {
  Error error;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double size = std::isfinite(expected[i]) ? std::fabs(expected[i]) : 0;
    const double off = distance(attention::load_value(data, type, static_cast<ptrdiff_t>(i)), expected[i]);
    error.most = std::max(error.most, off);
    error.excess = std::max(error.excess, off - (1e-5 + relative * size));
    error.largest = std::max(error.largest, size);
  }
  return error;
}

class Judge {
 public:
  explicit Judge(const Case& given) : case_(given) {}

  void compare(const char* what, const std::vector<double>& expected, attention::Type type, const Block& plain,
               const Block& fast) {
    const size_t size = expected.size() * attention::size_of(type);
    if (plain.bytes() != size) fail(what, "has another size than the oracle's", 0, 0);
    if (plain.bytes() != size) return;
    const bool is_lse = what == std::string("lse");
    const double half_unit = type == attention::Type::kFloat32   ? (is_lse ? 1e-6 : 0)
                             : type == attention::Type::kFloat16 ? 0x1p-11
                                                                 : 0x1p-8;
    const Error definition = error_of(expected, plain.data(), type, half_unit);
    const Error kernel = error_of(expected, fast.data(), type, half_unit);
    if (definition.excess > 0) fail(what, "of the definition is off", definition.most, definition.excess);
    // A few units of float32 in the last place of the largest value, beside those that the type itself costs.
    const double few = kFewUnits * 0x1p-24 * std::max(definition.largest, 1e-30);
    if (kernel.most > 2 * definition.most + few)
      fail(what, "is off by twice the definition's", kernel.most, definition.most);
    worst_ = std::max(worst_, (kernel.most - 2 * definition.most) / (0x1p-24 * std::max(definition.largest, 1e-30)));
  }
  bool good() const { return good_; }
  double worst() const { return worst_; }

 private:
  static constexpr double kFewUnits = 8;

  void fail(const char* what, const char* how, double error, double other) {
    std::printf("%s: %s %s: %.3g, %.3g\n", case_.name.c_str(), what, how, error, other);
    good_ = false;
  }

  const Case& case_;
  bool good_ = true;
  double worst_ = -INFINITY;
};

}  // namespace

int main(int, char** arguments) {
  Reader reader(arguments[1]);
  const uint32_t cases = reader.count();
  uint32_t good = 0;
  double worst = -INFINITY;
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
    worst = std::max(worst, judge.worst());
  }
  std::printf("%u of %u cases agree; at most %.1f units beyond twice the definition's error\n", good, cases, worst);
  return cases > 0 && good == cases ? 0 : 1;
}
