// How far two correct computations of one call may lie apart, from the sizes of what goes into its logits.
#pragma once

#include "call.h"

namespace host {

class Tolerance {
 public:
  explicit Tolerance(const Call& call);

  /// Absolute, beside the rounding to the result's own type.
  double out() const;
  double lse() const;
  double weights() const;

 private:
  double logit_ = 0;     // error of a logit
  double bytes_ = 0;     // the same of queries and keys in bytes, which weights never are
  double sum_ = 0;       // relative error of a sum over the keys
  double largest_ = 0;   // magnitude of a value
  double rounding_ = 0;  // of weights to 16 bits, where values are quantised
  bool is_logit_;        // what stands in the weights
};

}  // namespace host
