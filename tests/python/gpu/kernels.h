// The kernels by name, and what runs them.
#pragma once
#include "cuda_shim.h"
#include <map>
#include <string>

extern const std::map<std::string, shim::Kernel> kernels;
