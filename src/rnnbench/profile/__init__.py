"""Why a row is slow: launches under a framework's own profiler, launches that change the shape, and their verdicts."""
