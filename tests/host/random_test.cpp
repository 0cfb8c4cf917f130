// Random calls of attention(), as the fuzzer makes them, from a fixed seed.
#include <cstdlib>

#include "call.h"
#include "rounds.h"

int main(int, char** arguments) { return host::run_rounds(std::atoi(arguments[1]), 20240229, {host::check_call}); }
