// How a run of an iterative solver ended; the values are visible in Python.
#pragma once

namespace kw {

enum class Status : int {
    converged = 0,   // the tolerance is met
    paused = 1,      // the limit of updates is reached
    needs_rows = 2,  // rows of the Gram matrix are missing
    stalled = 3,     // rounding error prevents further progress
};

}  // namespace kw
